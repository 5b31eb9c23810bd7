// Clusters: what their blocks' waiting for and reading of each other costs, and how many of them the card holds.
#include "bench/micro/micro_group.h"

#include <algorithm>

namespace nsa::bench {
namespace {

constexpr unsigned kSizes[] = {2, 4, 8, 16};
constexpr const char *kMeasures[] = {"barrier", "load of the own shared memory", "load of a neighbour's",
                                     "4 KB of every other block", "bulk copy of 4 KB to a neighbour"};
constexpr size_t kMeasureCount = std::size(kMeasures);
constexpr unsigned kThreads = 256, kSharedBytes = 16 << 10;
constexpr unsigned kFullSharedBytes = 200 << 10; // one block a multiprocessor

MicroSource clusterSource(unsigned size) { return {"cluster_latency.cu", {{"kCluster", static_cast<int>(size)}}}; }

Status measureSize(MicroDevice &device, MicroReport &report, unsigned size) {
  const MicroSource source = clusterSource(size);
  MicroLaunch launch{.blocks = size, .threads = kThreads, .sharedBytes = kFullSharedBytes, .cluster = size};
  NSA_ASSIGN_OR_RETURN(int active, device.activeClusters(source, launch));
  const std::string text = "C = " + std::to_string(size) + ", ";
  NSA_RETURN_IF_ERROR(report.add("cluster", text + "clusters at once, a block a multiprocessor", "clusters",
                                 {static_cast<double>(active)}, {{"cluster", size}}));
  if (active == 0)
    return Status::ok(); // this card has no room for one
  for (const bool full : {false, true}) {
    launch.blocks = size * static_cast<unsigned>(full ? active : 1);
    launch.sharedBytes = full ? kFullSharedBytes : kSharedBytes;
    const size_t count = launch.blocks * kMeasureCount;
    NSA_ASSIGN_OR_RETURN(tools::Buffer clocks, device.accelerator().allocate(count * sizeof(int64_t)));
    int repetitions = 64;
    void *to = clocks.data();
    for (size_t measure = 0; measure < kMeasureCount; ++measure) {
      Result<std::vector<double>> samples = device.clocks(
          report.samples(), clocks, count, [&] { return device.launch(source, launch, {&repetitions, &to}); },
          [&](const std::vector<int64_t> &numbers) {
            std::vector<int64_t> own;
            for (size_t i = measure; i < numbers.size(); i += kMeasureCount)
              own.push_back(numbers[i]);
            std::nth_element(own.begin(), own.begin() + static_cast<long>(own.size() / 2), own.end());
            return static_cast<double>(own[own.size() / 2]);
          });
      if (!samples)
        return samples.status();
      NSA_RETURN_IF_ERROR(report.add("cluster", text + kMeasures[measure] + (full ? ", full card" : ", alone"),
                                     "clocks", std::move(*samples), {{"cluster", size}}));
    }
  }
  return Status::ok();
}

} // namespace

std::vector<MicroSource> clusterSources() {
  std::vector<MicroSource> sources;
  for (const unsigned size : kSizes)
    sources.push_back(clusterSource(size));
  return sources;
}

Status measureClusters(MicroDevice &device, MicroReport &report) {
  for (const unsigned size : kSizes)
    NSA_RETURN_IF_ERROR(measureSize(device, report, size));
  return Status::ok();
}

} // namespace nsa::bench
