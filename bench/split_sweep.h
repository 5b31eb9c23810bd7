// Finds, for one batch and one cache length, into how many shares the keys of a query of decode are best divided. Whole
// decoding steps are captured as graphs and replayed in turns: the keys of a query are divided into 1, 2, 4, 8 or 16
// shares in each branch, or into the number of shares that the engine chooses by its own rule.
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
  int64_t batch = 1;  // sequences, with one new token each
  int64_t tokens = 0; // of each sequence, the new one included
};

struct SplitSweep {
  struct Way {
    int64_t splits = 0; // 0: the rule's number
    double milliseconds = 0;
  };
  // The rule is first. A number of shares that divides the keys in the same way as a smaller number is not measured.
  std::vector<Way> ways;
  int64_t best = StoredRoute::kNever; // the number that is faster than the rule's; kNever: none is
  std::string rule;                   // "4/16/8": the rule's shares by branch
};

// A set of engines, each of which uses a fixed number of shares. The engines keep their compiled kernels in one folder,
// which the destructor removes.
class SplitEngines {
public:
  static Result<SplitEngines> open(tools::EngineSettings settings);
  SplitEngines(SplitEngines &&other) noexcept;
  ~SplitEngines();

  // Returns the engine that always divides the keys into this number of shares; 0 is the engine that chooses by its own
  // rule. The first call for a number of shares opens its engine.
  Result<nsa_engine *> engine(int64_t splits);

private:
  SplitEngines();
  struct State;
  std::unique_ptr<State> state;
};

// Measures all numbers. A number of shares is reported as better than the engine's choice when decoding is at least 1.2
// times as fast with it.
Result<SplitSweep> sweepSplits(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples);

} // namespace nsa::bench
