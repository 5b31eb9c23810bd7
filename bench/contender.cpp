#include "bench/contender.h"

#include "bench/median.h"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace nsa::bench {
namespace {

double cpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace

Result<std::vector<Times>> measureInTurns(const std::vector<Contender *> &contenders, int samples) {
  std::vector<std::vector<double>> wall(contenders.size()), cpu(contenders.size());
  for (int round = 0; round < samples; ++round)
    for (size_t i = 0; i < contenders.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      const double cpuBefore = cpuSeconds();
      Result<double> sample = contenders[i]->sample();
      if (!sample)
        return sample.status();
      // A sample may be the mean of several runs: what part of the elapsed time was the process's own holds for each.
      const double busy =
          (cpuSeconds() - cpuBefore) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      wall[i].push_back(*sample);
      cpu[i].push_back(*sample * busy);
    }
  std::vector<Times> times(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) {
    times[i].medianMs = median(wall[i]);
    times[i].fastestMs = *std::min_element(wall[i].begin(), wall[i].end());
    times[i].slowestMs = *std::max_element(wall[i].begin(), wall[i].end());
    times[i].cpuMs = median(cpu[i]);
  }
  return times;
}

} // namespace nsa::bench
