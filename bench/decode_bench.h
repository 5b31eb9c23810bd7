// Measures a decoding step with a cache of a given length. On a GPU, one decoding step is captured as a CUDA graph, and
// the graph is replayed. On the CPU, the step is called again. On a GPU, the step is measured with a cold L2 and with a
// warm L2. After the whole step, its branches are measured one after another. On a GPU, a graph with the same number of
// empty kernels is measured as well, which shows the cost of the launches alone.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"

#include <cstdint>
#include <vector>

namespace nsa::bench {

// What is measured. From each cache length in `tokens`, `samples` consecutive steps run, of which the first `warmUps`
// do not count. The specs are specs of the operator decode, and the page_size of each spec is used. If `tuned` is true,
// the kernels that have more than one candidate are tuned first.
struct DecodeChoice : LengthChoice {
  std::vector<int64_t> batches = {1};
  int64_t newTokens = 1; // for each sequence in a step

  Maxima maximaOf(int64_t batch, int64_t tokens) const; // for all steps from this length on
};

// Makes all branches of the forward pass in `history` use the same tensors K and V, which saves memory.
void shareKeys(tools::OperatorInputs &history);

// Returns how many tokens and compressed blocks the query at the last of `tokens` tokens reads (docs/specification.md
// 10). The result is the same for every choice of selected blocks.
int64_t readsOf(const Spec &spec, int64_t tokens);

// The microseconds that each branch takes in a timed run. The time of the block selection is part of the time of the
// branch sel, and the time of compression is part of the time of cmp.
struct BranchTimes {
  double cmp = 0, sel = 0, win = 0, rest = 0;
};
BranchTimes branchTimes(const std::vector<nsa_part_time> &parts);

// Writes decode.json with all fields, and decode.csv with only the columns of nsa-vibe's bench: S, ms_total, ms_cmp,
// ms_sel, ms_win, reads_actual, reads_expected. With several specs or batches, each spec and batch has its own file
// decode_NAME_bN.csv. The bench fails when the number of tokens and compressed blocks that a step has read differs from
// the result of readsOf.
Result<nlohmann::ordered_json> benchDecode(BenchDevice &device, const DecodeChoice &choice);

} // namespace nsa::bench
