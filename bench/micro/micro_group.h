// The groups of nsa_bench_micro, one for each section of docs/hopper_measurements.md. A group of microbenchmarks has
// jobs, each of which times one kernel.
// Thread-safety: one thread.
#pragma once

#include "bench/micro/micro_device.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::bench {

struct MicroJob {
  std::string measure, unit; // columns of the job's row
  MicroSource source;        // is loaded before `sample` is called
  nlohmann::ordered_json columns;
  // Returns the samples, or none if this card has no room for the job.
  std::function<Result<std::vector<double>>(MicroDevice &device, int samples)> sample;
};

struct MicroGroup {
  const char *name;
  std::vector<MicroJob> (*jobs)();
};

std::vector<MicroJob> compileCostJobs();
std::vector<MicroJob> tmaRingJobs();
std::vector<MicroJob> productRateJobs();
std::vector<MicroJob> exponentJobs();
std::vector<MicroJob> boxRowJobs();
std::vector<MicroJob> partialStoreJobs();
std::vector<MicroJob> clusterJobs();
std::vector<MicroJob> launchGapJobs();
inline constexpr MicroGroup kMicroGroups[] = {
    {"compile", compileCostJobs}, // first, alone: the others' kernels are compiled on all cores
    {"tma", tmaRingJobs},         {"product", productRateJobs}, {"exponent", exponentJobs}, {"box", boxRowJobs},
    {"store", partialStoreJobs},  {"cluster", clusterJobs},     {"launch", launchGapJobs},
};

// Converts each sample.
template <typename Convert>
Result<std::vector<double>> converted(Result<std::vector<double>> samples, const Convert &convert) {
  if (samples)
    for (double &sample : *samples)
      sample = convert(sample);
  return samples;
}

} // namespace nsa::bench
