// `nsa bench search` measures how close the kernel that the tuner chooses comes to the kernel that an exhaustive search
// finds. For each shape two searches are made: the tuner's usual search, and an exhaustive search that measures every
// candidate to the end. Then the kernels that the usual and the exhaustive search chose are measured again in turns.
// Thread-safety: one thread.
#pragma once

#include "bench/verbs/length_bench.h"
#include "tools/support/engine.h"

#include <vector>

namespace nsa::bench {

struct SearchChoice {
  LengthChoice lengths; // `tuned` is ignored: both searches are made
  std::vector<Operator> operators;
  tools::EngineSettings engine; // device and compiler; its budget is that of the usual search
  double exhaustiveSeconds = 0; // for each exhaustive search; 0: no limit
};

// The largest accepted ratio between the time of the kernel that the usual search chose and the time of the kernel that
// the exhaustive search chose.
inline constexpr double kSearchLimit = 1.02;

// The fact `search` of the report says for how many shapes the kernel of the usual search takes at most kSearchLimit
// times as long as the kernel of the exhaustive search, and gives the worst ratio of the two times.
Result<nlohmann::ordered_json> benchSearch(BenchDevice &device, const SearchChoice &choice);

} // namespace nsa::bench
