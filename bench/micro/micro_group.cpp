#include "bench/micro/micro_group.h"

#include "bench/measure/timing.h"

#include <algorithm>
#include <cstdio>

namespace nsa::bench {

std::span<const MicroGroup> microGroups() {
  // Compiling first, alone: the others' kernels are compiled on all cores.
  static constexpr MicroGroup kGroups[] = {
      {"compile", compileCostSources, measureCompileCosts},
      {"tma", tmaRingSources, measureTmaRing},
      {"product", productRateSources, measureProductRates},
      {"exponent", exponentSources, measureExponents},
      {"box", boxRowSources, measureBoxRows},
      {"store", partialStoreSources, measurePartialStores},
      {"cluster", clusterSources, measureClusters},
      {"launch", launchGapSources, measureLaunchGaps},
  };
  return kGroups;
}

Status MicroReport::add(const std::string &group, const std::string &measure, const std::string &unit,
                        std::vector<double> samples, const nlohmann::ordered_json &parameters) {
  if (samples.empty())
    return Status::error(ErrorCode::kInternal, group + ", " + measure + ": no sample");
  std::sort(samples.begin(), samples.end());
  std::printf("%-9s %-74s %10.4g %-12s (%.4g to %.4g)\n", group.c_str(), measure.c_str(), median(samples), unit.c_str(),
              samples.front(), samples.back());
  std::fflush(stdout);
  nlohmann::ordered_json row = {
      {"group", group},           {"measure", measure},     {"median", median(samples)}, {"unit", unit},
      {"least", samples.front()}, {"most", samples.back()}, {"samples", samples.size()}};
  row.update(parameters);
  return report.add(std::move(row));
}

} // namespace nsa::bench
