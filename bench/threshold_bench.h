// `nsa bench thresholds`: into how many shares decode best deals its keys (split_sweep.h), and from which length on the
// tile program pays against the simple kernel, and up to which dense attention does where every block is selected, each
// measured in turns over lengths (autotune/threshold.h). Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"
#include "tools/support/engine.h"

namespace nsa::bench {

struct ThresholdChoice {
  LengthChoice lengths;         // `tokens` empty: powers of two up to where the usual way is certain to lose
  tools::EngineSettings engine; // device and compiler
  std::string storeIn;          // database that receives the routes; "": none
  // Of decode, whose numbers of shares are measured at each batch and length; none: not measured.
  std::vector<int64_t> decodeBatches, decodeTokens;
};

// The report's fact `thresholds` has an entry for each spec and route: the threshold, or that it never pays.
Result<nlohmann::ordered_json> benchThresholds(BenchDevice &device, const ThresholdChoice &choice);

} // namespace nsa::bench
