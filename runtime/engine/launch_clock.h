// How long each launch of one run took.
// Thread-safety: one thread at a time.
#pragma once

#include "runtime/base/status.h"

#include <vector>

namespace nsa {

// Marks moments on a stream, the first before the first launch and one after each.
class LaunchClock {
public:
  virtual ~LaunchClock() = default;
  // On a GPU it enqueues and does not wait.
  virtual Status mark(void *stream) = 0;
  // Waits for the last mark: milliseconds between each mark and the next.
  virtual Result<std::vector<double>> spans() = 0;
};

} // namespace nsa
