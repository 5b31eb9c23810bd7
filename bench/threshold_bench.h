// `nsa bench thresholds` finds three thresholds: the best number of shares for the keys of decode (split_sweep.h); the
// length from which on the tile program is faster than the simple kernel; and the length up to which dense attention is
// faster where every block is selected. To find a threshold, the two algorithms that the threshold chooses between are
// measured alternately over a range of lengths (autotune/threshold.h).
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"
#include "tools/support/engine.h"

namespace nsa::bench {

struct ThresholdChoice {
  LengthChoice lengths;         // empty `tokens`: powers of two up to where the usual way certainly loses
  tools::EngineSettings engine; // device and compiler
  std::string storeIn;          // the database that receives the routes; "": none
  // The batches and cache lengths of decode at which different numbers of shares are measured. Empty: not measured.
  std::vector<int64_t> decodeBatches, decodeTokens;
};

// The report's fact `thresholds` has an entry for each spec and route: the threshold, or the statement that there is no
// threshold.
Result<nlohmann::ordered_json> benchThresholds(BenchDevice &device, const ThresholdChoice &choice);

} // namespace nsa::bench
