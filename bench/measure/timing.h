// Clocks, and the median of samples.
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

namespace nsa::bench {

// The time of the steady clock, which is the same for all processes of the machine.
inline double wallMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The CPU time of this process, over all its threads and without other processes.
inline double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

inline double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples.empty() ? 0 : samples[samples.size() / 2];
}

} // namespace nsa::bench
