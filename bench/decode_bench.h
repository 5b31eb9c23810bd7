// Measures a decoding step with a cache of a given length. One decoding step is captured as a CUDA graph and the graph
// is replayed (on the CPU the step is called again), each time with a cold L2. After the whole step, its branches are
// measured one after another. At the end, on a GPU, a captured graph of as many empty kernels as the step launches is
// measured.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"

#include <cstdint>
#include <vector>

namespace nsa::bench {

// What is measured. At each cache length in `tokens`, `samples` consecutive steps are measured after `warmUps` steps
// that do not count. The specs are specs of the operator decode, and each one's page_size is used. If `tuned` is true,
// the kernels that have more than one candidate are tuned first.
struct DecodeChoice : LengthChoice {
  std::vector<int64_t> batches = {1};
  int64_t newTokens = 1; // for each sequence in a step

  Maxima maximaOf(int64_t batch, int64_t tokens) const; // for all steps from this length on
};

// Makes all branches of a history use the same tensors K and V, which saves memory.
void shareKeys(tools::OperatorInputs &history);

// Returns how many tokens and compressed blocks the query at the last of `tokens` tokens reads (docs/specification.md
// 10). The number of reads does not depend on which blocks the query selects.
int64_t readsOf(const Spec &spec, int64_t tokens);

// The microseconds that each branch takes in a timed run. The time of the block selection is part of the time of the
// branch sel, and the time of compression is part of the time of cmp.
struct BranchTimes {
  double cmp = 0, sel = 0, win = 0, rest = 0;
};
BranchTimes branchTimes(const std::vector<nsa_part_time> &parts);

// Writes decode.json with all fields, and decode.csv with only the columns of nsa-vibe's bench: S, ms_total, ms_cmp,
// ms_sel, ms_win, reads_actual, reads_expected. With several specs or batches, each spec and batch has its own file
// decode_NAME_bN.csv. The bench fails when a step has read another number of tokens than readsOf returns for it.
Result<nlohmann::ordered_json> benchDecode(BenchDevice &device, const DecodeChoice &choice);

} // namespace nsa::bench
