// The groups of nsa_bench_micro, one for each section of docs/hopper_measurements.md. A group of microbenchmarks has
// the kernels that it needs, and the function that measures it.
// Thread-safety: only one thread at a time may use a MicroReport.
#pragma once

#include "bench/measure/bench_report.h"
#include "bench/micro/micro_device.h"

#include <span>

namespace nsa::bench {

class MicroReport {
public:
  MicroReport(BenchReport &report, int samples) : report(report), sampleCount(samples) {}

  int samples() const { return sampleCount; }
  // Prints and writes a row with the median, the least and the greatest of the samples. `parameters` are further
  // columns.
  Status add(const std::string &group, const std::string &measure, const std::string &unit, std::vector<double> samples,
             const nlohmann::ordered_json &parameters = nlohmann::ordered_json::object());

private:
  BenchReport &report;
  int sampleCount;
};

struct MicroGroup {
  const char *name;
  std::vector<MicroSource> (*sources)();
  Status (*measure)(MicroDevice &device, MicroReport &report);
};

std::span<const MicroGroup> microGroups();

std::vector<MicroSource> tmaRingSources();
Status measureTmaRing(MicroDevice &device, MicroReport &report);
std::vector<MicroSource> boxRowSources();
Status measureBoxRows(MicroDevice &device, MicroReport &report);
std::vector<MicroSource> productRateSources();
Status measureProductRates(MicroDevice &device, MicroReport &report);
std::vector<MicroSource> exponentSources();
Status measureExponents(MicroDevice &device, MicroReport &report);
std::vector<MicroSource> partialStoreSources();
Status measurePartialStores(MicroDevice &device, MicroReport &report);
std::vector<MicroSource> clusterSources();
Status measureClusters(MicroDevice &device, MicroReport &report);
std::vector<MicroSource> launchGapSources();
Status measureLaunchGaps(MicroDevice &device, MicroReport &report);
std::vector<MicroSource> compileCostSources();
Status measureCompileCosts(MicroDevice &device, MicroReport &report);

} // namespace nsa::bench
