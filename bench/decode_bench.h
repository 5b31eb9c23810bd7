// What a step of decoding costs from a cache of a given length: captured once and replayed (on the CPU: called again),
// each from a cold L2, beside as many kernels that do nothing; then its branches one after the other.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"

#include <cstdint>
#include <vector>

namespace nsa::bench {

// `samples` are the steps that follow each other from each length of `tokens` on, the first `warmUps` of them are not
// counted. Specs are of decode, whose page_size counts. `tuned`: kernels that have choices are tuned first.
struct DecodeChoice : LengthChoice {
  std::vector<int64_t> batches = {1};
  int64_t newTokens = 1; // of each sequence in a step

  Maxima maximaOf(int64_t batch, int64_t tokens) const; // of all steps from a length on
};

// One K and V for all branches, of a history that decode is fed with: the least memory.
void shareKeys(tools::OperatorInputs &history);

// Tokens and compressed blocks that a query reads as the last of `tokens` (docs/specification.md 10), whatever it
// selects.
int64_t readsOf(const Spec &spec, int64_t tokens);

// Of a timed run: microseconds by branch. What selects counts for sel, what compresses for cmp.
struct BranchTimes {
  double cmp = 0, sel = 0, win = 0, rest = 0;
};
BranchTimes branchTimes(const std::vector<nsa_part_time> &parts);

// decode.json has everything, decode.csv the columns of nsa-vibe's bench and no other: S, ms_total, ms_cmp, ms_sel,
// ms_win, reads_actual, reads_expected. Of several specs or batches each has a CSV of its own, decode_NAME_bN.csv. That
// a step has read other than readsOf is an error.
Result<nlohmann::ordered_json> benchDecode(BenchDevice &device, const DecodeChoice &choice);

} // namespace nsa::bench
