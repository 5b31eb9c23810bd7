// `nsa bench search` measures how close the kernel that the tuner chooses comes to the kernel that an exhaustive search
// finds. For each shape two winners are named: the winner of the tuner's usual search, and the winner after measuring
// every candidate to the end. After both searches, the two winners of a shape are measured in turns.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"
#include "tools/support/engine.h"

#include <vector>

namespace nsa::bench {

struct SearchChoice {
  LengthChoice lengths; // `tuned` is ignored: both searches are made
  std::vector<Operator> operators;
  tools::EngineSettings engine; // device and compiler; its budget is that of the usual search
  double exhaustiveSeconds = 0; // for each exhaustive search; 0: no limit
};

// A tuned kernel may take at most this many times as long as the fastest kernel.
inline constexpr double kSearchLimit = 1.02;

// The report's fact `search` says how many shapes are within kSearchLimit, and what the worst ratio is.
Result<nlohmann::ordered_json> benchSearch(BenchDevice &device, const SearchChoice &choice);

} // namespace nsa::bench
