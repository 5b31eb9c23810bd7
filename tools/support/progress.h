// One line on a terminal's stderr that says what a long step is doing and for how long. A Progress writes nothing if
// stderr is no terminal, and nothing in the first two seconds of a step. The line is erased when the step is over.
// Thread-safety: one thread may use a Progress. A thread of its own updates the time in the line.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace nsa::tools {

// A duration as "42 s", "12 min" or "1.5 h".
std::string durationText(double seconds);

class Progress {
public:
  Progress();
  // `to` is a file descriptor. Tests use this.
  explicit Progress(int to, double quietSeconds);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  // Begins a step and ends the step before: "tuning window (at most 30 s)". An empty text begins none. Erases the line,
  // so that results can be printed.
  // `secondsLeft` is the time that all work still takes, where it is known. The time that is left counts down: "tuning
  // ... 12 s, about 3 min left".
  void step(const std::string &text, std::optional<double> secondsLeft = {});

private:
  void run();
  void erase();

  const int to;
  const double quietSeconds;
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  double begin = 0;
  std::optional<double> left; // at the begin of the step
  bool isShown = false, isOver = false;
  std::thread ticker; // only on a terminal
};

} // namespace nsa::tools
