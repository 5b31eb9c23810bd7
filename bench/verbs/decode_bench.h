// Measures a decoding step with a cache of a given length. On a GPU, the bench captures one decoding step as a CUDA
// graph and replays the graph for each measured step. On the CPU, each measured step is one call of the operator
// decode. On a GPU, the step is measured with a cold L2 and with a warm L2. After the whole step, its branches are
// measured one after another. On a GPU, a graph with the same number of empty kernels is measured as well, which shows
// the cost of the launches alone.
// Thread-safety: one thread.
#pragma once

#include "bench/measure/peer_process.h"
#include "bench/verbs/length_bench.h"
#include "tools/support/decode_run.h"

#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace nsa::bench {

// What is measured. From each cache length in `tokens`, `samples` consecutive steps run, of which the first `warmUps`
// do not count. Each element of `specs` must be a spec of the operator decode. The page_size of a spec says whether the
// cache is in pages. If a spec has batch_invariant, its step is measured without and with it. If `tuned` is true, the
// kernels that have more than one candidate are tuned first.
struct DecodeChoice : LengthChoice {
  std::vector<int64_t> batches = {1};
  int64_t newTokens = 1; // for each sequence in a step
  int64_t maxTokens = 0; // for which plans and caches are made; 0: as many as the steps from each length on need

  int64_t tokensNeeded(int64_t tokens) const;           // by all steps from this length on
  Maxima maximaOf(int64_t batch, int64_t tokens) const; // for the same steps
};

// A decode call over a cache that has random tokens. All branches share one tensor K and one tensor V, which saves
// memory. The next step's new tokens are fed.
struct FilledDecode {
  tools::OperatorInputs history;
  std::vector<int64_t> counts; // new tokens of each sequence
  std::optional<tools::DecodeRun> run;

  // `spec` is of the operator decode. `cached`: the tokens of each sequence before the step.
  static Result<std::unique_ptr<FilledDecode>> make(tools::Accelerator &accelerator, const Spec &spec,
                                                    const Maxima &maxima, int64_t cached,
                                                    const std::set<TensorName> &wanted);
};

// Returns how many tokens and compressed blocks the query of the last token reads in a sequence of `tokens` tokens
// (docs/specification.md 10). This number of reads does not depend on which blocks the selection chooses.
int64_t readsOf(const Spec &spec, int64_t tokens);

// Returns the bytes of keys and values that a step must load: of each group's reads, with `tokens` tokens in each
// sequence.
double bytesOf(const Spec &spec, int64_t batch, int64_t tokens);

// The times of consecutive steps that differ: one of `period` steps makes a compressed row. Each place in the period
// has the median of its steps.
struct PeriodTimes {
  double mean = 0, worst = 0; // of the places
};
PeriodTimes periodTimes(const std::vector<double> &samples, int64_t period);

// The microseconds that each branch takes in a timed run. The time of the block selection is part of the time of the
// branch sel, and the time of compression is part of the time of cmp.
struct BranchTimes {
  double cmp = 0, sel = 0, win = 0, rest = 0;
};
BranchTimes branchTimes(const std::vector<nsa_part_time> &parts);

// Writes decode.json with all fields, and decode.csv with only the columns of nsa-vibe's bench: S, ms_total, ms_cmp,
// ms_sel, ms_win, reads_actual, reads_expected. With several specs or batches, each spec and batch has its own file
// decode_NAME_bN.csv. The bench fails when the number of tokens and compressed blocks that a step has read differs from
// the result of readsOf. Beside each row stands dense decoding by the implementations of `peers`, over as many keys and
// with the same heads; null: none is measured.
Result<nlohmann::ordered_json> benchDecode(BenchDevice &device, const DecodeChoice &choice, PeerProcess *peers);

} // namespace nsa::bench
