// Finds, for one batch and one cache length, into how many shares the keys of a query of decode are best divided. Whole
// decoding steps are captured as graphs and replayed in turns: the keys of a query are divided into 1, 2, 4, 8 or 16
// shares in each branch, or into the number of shares that the engine chooses by its own rule.
// Thread-safety: one thread.
#pragma once

#include "bench/verbs/length_bench.h"
#include "cache/rows/rows.h"
#include "tools/support/engine.h"
#include "tools/support/scratch_folder.h"

#include <map>
#include <string>
#include <vector>

namespace nsa::bench {

struct SplitPoint {
  Spec spec;          // of decode; its page_size counts
  int64_t batch = 1;  // sequences, with one new token each
  int64_t tokens = 0; // of each sequence, the new one included

  Maxima maxima() const { return {.batch = batch, .tokensQ = batch, .seqlenQ = 1, .seqlenK = tokens}; }
};

struct SplitSweep {
  struct Way {
    int64_t splits = 0; // 0: the rule's number
    double milliseconds = 0;
  };
  // The first element is the number that the engine chooses by its own rule. A number of shares that divides the keys
  // in the same way as a smaller number is not measured.
  std::vector<Way> ways;
  int64_t best = StoredRoute::kNever; // the number that is faster than the rule's; kNever: none is
  std::string rule;                   // "4/16/8": the rule's shares by branch
};

// A set of engines, each of which uses a fixed number of shares. The engines keep their compiled kernels in one folder,
// which the destructor removes.
class SplitEngines {
public:
  static Result<SplitEngines> open(tools::EngineSettings settings);

  // Returns an engine that always divides the keys of a query into `splits` shares. If `splits` is 0, returns an engine
  // that chooses the number of shares by its own rule. The engine is created at the first call with this number.
  Result<nsa_engine *> engine(int64_t splits);

private:
  SplitEngines(tools::EngineSettings settings, tools::ScratchFolder folder)
      : settings(std::move(settings)), folder(std::move(folder)) {}

  tools::EngineSettings settings;
  tools::ScratchFolder folder;
  std::map<int64_t, tools::EngineHandle> engines; // by the number that they force
};

// Measures decoding with all numbers of shares. A number of shares is reported as better than the engine's own rule if
// decoding with this number is at least 1.2 times as fast.
Result<SplitSweep> sweepSplits(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples);

} // namespace nsa::bench
