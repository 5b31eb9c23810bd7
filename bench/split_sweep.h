// Into how many shares the keys of a query of decode are best dealt at one batch and length: whole steps of decoding
// with 1, 2, 4, 8 and 16 shares in each branch, and with as many as the rule says, captured and replayed in turns.
// Thread-safety: one thread.
#pragma once

#include "bench/length_bench.h"
#include "cache/rows.h"
#include "tools/support/engine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa::bench {

struct SplitPoint {
  Spec spec;          // of decode; its page_size counts
  int64_t batch = 1;  // sequences, of one new token each
  int64_t tokens = 0; // of each with the new one
};

struct SplitSweep {
  struct Way {
    int64_t splits = 0; // 0: by rule
    double milliseconds = 0;
  };
  std::vector<Way> ways;              // the rule first; counts that come to the same as an earlier one are left out
  int64_t best = StoredRoute::kNever; // the count that pays against the rule: never
  std::string rule;                   // "4/16/8": the rule's shares by branch
};

// Engines that force each number of shares; kernels that they compile are kept in one folder, which goes with them.
class SplitEngines {
public:
  static Result<SplitEngines> open(tools::EngineSettings settings);
  SplitEngines(SplitEngines &&other) noexcept;
  ~SplitEngines();

  // 0: the rule's. Opened when first asked for.
  Result<nsa_engine *> engine(int64_t splits);

private:
  SplitEngines();
  struct State;
  std::unique_ptr<State> state;
};

// A count pays that is 1.2 times as fast as the rule's.
Result<SplitSweep> sweepSplits(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples);

} // namespace nsa::bench
