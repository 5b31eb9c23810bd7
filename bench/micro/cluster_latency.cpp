// Clusters: what their blocks' waiting for and reading of each other costs, and how many of them the card holds.
#include "bench/micro/micro_group.h"

namespace nsa::bench {
namespace {

constexpr const char *kMeasures[] = {"barrier", "load of the own shared memory", "load of a neighbour's",
                                     "4 KB of every other block", "bulk copy of 4 KB to a neighbour"};
constexpr size_t kMeasureCount = std::size(kMeasures);
constexpr unsigned kThreads = 256, kSharedBytes = 16 << 10;
constexpr unsigned kFullSharedBytes = 200 << 10; // one block a multiprocessor

MicroSource clusterSource(unsigned size) { return {"cluster_latency.cu", {{"kCluster", static_cast<int>(size)}}}; }

// How many clusters the card holds, with a block on each multiprocessor.
Result<int> activeClusters(const MicroDevice &device, unsigned size) {
  return device.activeClusters(clusterSource(size),
                               {.blocks = size, .threads = kThreads, .sharedBytes = kFullSharedBytes, .cluster = size});
}

Result<std::vector<double>> sampleMeasure(const MicroDevice &device, int samples, unsigned size, bool full,
                                          size_t measure) {
  NSA_ASSIGN_OR_RETURN(const int active, activeClusters(device, size));
  if (active == 0)
    return std::vector<double>(); // this card has no room for one
  const MicroSource source = clusterSource(size);
  const MicroLaunch launch{.blocks = size * static_cast<unsigned>(full ? active : 1),
                           .threads = kThreads,
                           .sharedBytes = full ? kFullSharedBytes : kSharedBytes,
                           .cluster = size};
  const size_t count = launch.blocks * kMeasureCount;
  NSA_ASSIGN_OR_RETURN(tools::Buffer clocks, device.accelerator().allocate(count * sizeof(int64_t)));
  int repetitions = 64;
  void *to = clocks.data();
  return device.clocks(
      samples, clocks, count, [&] { return device.launch(source, launch, {&repetitions, &to}); },
      [&](const std::vector<int64_t> &numbers) {
        std::vector<int64_t> own;
        for (size_t i = measure; i < numbers.size(); i += kMeasureCount)
          own.push_back(numbers[i]);
        return medianClocks(std::move(own));
      });
}

} // namespace

std::vector<MicroJob> clusterJobs() {
  std::vector<MicroJob> jobs;
  for (const unsigned size : {2u, 4u, 8u, 16u}) {
    const std::string text = "C = " + std::to_string(size) + ", ";
    const auto add = [&](const std::string &measure, const char *unit, auto sample) {
      jobs.push_back({text + measure, unit, clusterSource(size), {{"cluster", size}}, sample});
    };
    add("clusters at once, a block a multiprocessor", "clusters",
        [size](MicroDevice &device, int) -> Result<std::vector<double>> {
          NSA_ASSIGN_OR_RETURN(const int active, activeClusters(device, size));
          return std::vector{static_cast<double>(active)};
        });
    for (const bool full : {false, true})
      for (size_t measure = 0; measure < kMeasureCount; ++measure)
        add(kMeasures[measure] + std::string(full ? ", full card" : ", alone"), "clocks",
            [=](MicroDevice &device, int samples) { return sampleMeasure(device, samples, size, full, measure); });
  }
  return jobs;
}

} // namespace nsa::bench
