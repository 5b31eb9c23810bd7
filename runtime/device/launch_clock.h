// Measures how long each launch of one run takes.
// Thread-safety: one thread at a time may use a LaunchClock.
#pragma once

#include "runtime/base/status.h"

#include <vector>

namespace nsa {

// Records times on a stream: one time before the first launch, and one time after each launch.
class LaunchClock {
public:
  virtual ~LaunchClock() = default;
  // Records the time at which the stream reaches this point. On a GPU `mark` enqueues an event and does not wait.
  virtual Status mark(void *stream) = 0;
  // Waits for the last mark. Returns the milliseconds between each recorded time and the next one.
  virtual Result<std::vector<double>> spans() = 0;
};

} // namespace nsa
