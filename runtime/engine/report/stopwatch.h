// This file reads the monotonic clock.
// Thread-safety: immutable.
#pragma once

#include <chrono>

namespace nsa {

inline double monotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Counts milliseconds from the moment at which it was made.
class Stopwatch {
public:
  double milliseconds() const { return (monotonicSeconds() - start) * 1e3; }

private:
  double start = monotonicSeconds();
};

} // namespace nsa
