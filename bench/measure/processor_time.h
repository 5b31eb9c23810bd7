// The CPU time of this process, over all its threads and without other processes.
// Thread-safety: any thread.
#pragma once

#include <ctime>

namespace nsa::bench {

inline double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace nsa::bench
