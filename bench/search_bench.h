// `nsa bench search`: how near the tuner's search comes to one that leaves nothing out. Of each shape the tuner names a
// winner as usual, then from every candidate measured to the end, and both winners are measured in turns.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"
#include "tools/support/engine.h"

#include <vector>

namespace nsa::bench {

struct SearchChoice {
  LengthChoice lengths; // `tuned` does not count: both searches are made
  std::vector<Operator> operators;
  tools::EngineSettings engine; // device and compiler; its budget is the usual search's
  double exhaustiveSeconds = 0; // for each exhaustive search; 0: as long as it takes
};

// A tuned kernel may take so many times as long as the best one there is.
inline constexpr double kSearchLimit = 1.02;

// The report's fact `search` says how many shapes are within kSearchLimit, and what the worst ratio is.
Result<nlohmann::ordered_json> benchSearch(BenchDevice &device, const SearchChoice &choice);

} // namespace nsa::bench
