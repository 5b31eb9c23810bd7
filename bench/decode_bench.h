// Measures a step of decoding from a cache of a given length. A step of decoding is captured once and replayed (on the
// CPU: called again), each time with a cold L2. In turns with the step runs a capture of as many kernels that do
// nothing. After the step, the branches are measured one after another.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"

#include <cstdint>
#include <vector>

namespace nsa::bench {

// What is measured. From each length of `tokens` on, `samples` steps follow each other, and the first `warmUps` steps
// do not count. The specs are specs of decode, and their page_size is used. If `tuned` is true, kernels that have
// choices are tuned first.
struct DecodeChoice : LengthChoice {
  std::vector<int64_t> batches = {1};
  int64_t newTokens = 1; // for each sequence in a step

  Maxima maximaOf(int64_t batch, int64_t tokens) const; // for all steps from this length on
};

// Lets all branches of a history share one K and one V, which takes the least memory.
void shareKeys(tools::OperatorInputs &history);

// How many tokens and compressed blocks the last of `tokens` tokens reads as a query (docs/specification.md 10). The
// number of reads does not depend on which blocks the query selects.
int64_t readsOf(const Spec &spec, int64_t tokens);

// The microseconds of a timed run by branch. The time of selection counts for the branch sel, and the time of
// compression for cmp.
struct BranchTimes {
  double cmp = 0, sel = 0, win = 0, rest = 0;
};
BranchTimes branchTimes(const std::vector<nsa_part_time> &parts);

// Writes decode.json with all fields, and decode.csv with only the columns of nsa-vibe's bench: S, ms_total, ms_cmp,
// ms_sel, ms_win, reads_actual, reads_expected. With several specs or batches, each spec and batch has its own file
// decode_NAME_bN.csv. The bench fails when a step has read another number of tokens than readsOf says.
Result<nlohmann::ordered_json> benchDecode(BenchDevice &device, const DecodeChoice &choice);

} // namespace nsa::bench
