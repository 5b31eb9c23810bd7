// One line on a terminal's stderr that says what a long step is doing and for how long. Nothing is written where stderr
// is no terminal, nor in a step's first two seconds, and the line is gone when the step is over.
// Thread-safety: one thread may use it; a thread of its own keeps the clock on the line running.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace nsa::tools {

// "42 s", "12 min", "1.5 h".
std::string durationText(double seconds);

class Progress {
public:
  Progress();
  // `to`: a file descriptor, for tests.
  explicit Progress(int to, double quietSeconds);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  // A new step, in place of the one before: "tuning window (at most 30 s)". An empty text: none, until the next one.
  // Ends with the line erased, so that results may be printed after it.
  // `secondsLeft`: of everything, when that is known; it counts down: "tuning ... 12 s, about 3 min left".
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
  std::optional<double> left; // when the step began
  bool isShown = false, isOver = false;
  std::thread ticker; // only on a terminal
};

} // namespace nsa::tools
