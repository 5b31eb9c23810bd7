// `nsa bench thresholds` finds three kinds of thresholds. For decode, it finds the best number of programs that share
// the keys of a query, or that one kernel for all is faster (decode_sweep.h). For the operators window and cmp, it
// finds the length from which on the template `attention` is faster than the simple template `row_attention`. For calls
// so short that every block is selected, it finds the length up to which dense attention is faster than selection with
// attention to the selected blocks. To find a threshold between two algorithms, the bench measures the two algorithms
// alternately over a range of lengths (autotune/tuner/threshold.h). Thread-safety: one thread.
#pragma once

#include "bench/verbs/length_bench.h"
#include "tools/support/engine.h"

namespace nsa::bench {

struct ThresholdChoice {
  LengthChoice lengths;         // empty `tokens`: powers of two up to where the usual way certainly loses
  tools::EngineSettings engine; // device and compiler
  std::string storeIn;          // the database that receives the routes; "": none
  // The batches, the lengths of sequences and their new tokens of decode at which the bench measures the ways to do a
  // step. Empty: not measured.
  std::vector<int64_t> decodeBatches, decodeTokens, decodeNewTokens;
};

// Measures all thresholds and returns the report. The report's field `thresholds` has one entry for each spec and each
// threshold: the measured number, or a text that says why there is no number.
Result<nlohmann::ordered_json> benchThresholds(BenchDevice &device, const ThresholdChoice &choice);

} // namespace nsa::bench
