// One line on a terminal's stderr that says what a long step is doing and for how long. A Progress writes nothing if
// stderr is no terminal, and nothing in the first two seconds of a step. When the step is over, a Progress erases the
// line.
// Thread-safety: one thread may use a Progress. A Progress starts a thread that updates the time in the line.
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

  // Ends the previous step and begins a step that is shown as `text`, for example "tuning window (at most 30 s)". If
  // `text` is empty, step() only ends the previous step. step() erases the line of the previous step, so that the
  // caller can print results.
  // `secondsLeft` is the estimated time until all work is done, if it is known. The line shows the estimated time and
  // counts it down: "tuning ... 12 s, about 3 min left".
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
