#include "bench/measure/contender.h"

#include "bench/measure/timing.h"

#include <numeric>
#include <random>

namespace nsa::bench {

nlohmann::ordered_json Times::fields() const {
  return {{"median_ms", medianMs}, {"fastest_ms", fastestMs}, {"slowest_ms", slowestMs}};
}

std::vector<Result<Times>> measureInTurns(const std::vector<Contender *> &contenders, int samples) {
  std::vector<std::vector<double>> wall(contenders.size()), cpu(contenders.size());
  std::vector<Status> failures(contenders.size());
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(1); // NOLINT(bugprone-random-generator-seed): two runs shall differ in their times alone
  for (int round = 0; round < samples; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      if (!failures[i].isOk())
        continue;
      const double wallBefore = wallMs(), cpuBefore = processorSeconds();
      Result<double> sample = contenders[i]->sample();
      if (!sample) {
        failures[i] = sample.status();
        continue;
      }
      // A sample may be the mean of several runs: what part of the elapsed time was the process's own holds for each.
      const double busy = (processorSeconds() - cpuBefore) * 1e3 / (wallMs() - wallBefore);
      wall[i].push_back(*sample);
      cpu[i].push_back(*sample * busy);
    }
  }
  std::vector<Result<Times>> results;
  for (size_t i = 0; i < contenders.size(); ++i) {
    if (!failures[i].isOk()) {
      results.emplace_back(failures[i]);
      continue;
    }
    const auto [fastest, slowest] = std::minmax_element(wall[i].begin(), wall[i].end());
    results.emplace_back(
        Times{.fastestMs = *fastest, .medianMs = median(wall[i]), .slowestMs = *slowest, .cpuMs = median(cpu[i])});
  }
  return results;
}

Result<std::vector<Times>> measureAll(const std::vector<Contender *> &contenders, int samples) {
  std::vector<Times> all;
  for (Result<Times> &one : measureInTurns(contenders, samples)) {
    NSA_ASSIGN_OR_RETURN(const Times times, std::move(one));
    all.push_back(times);
  }
  return all;
}

} // namespace nsa::bench
