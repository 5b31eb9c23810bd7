// Steps of decode in each way that can be chosen: with each number of programs that share the keys of a query, and by
// the kernel `decode_step`.
//
// Thread-safety: one thread.
#pragma once

#include "bench/measure/bench_device.h"
#include "runtime/engine/choices/routes.h"
#include "tools/support/engine.h"
#include "tools/support/scratch_folder.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace nsa::bench {

// Returns whether a kernel could not be made because its template is not for this device, or not for these sizes.
bool isNotServed(const Status &status);

struct SplitPoint {
  Spec spec;             // of decode; its page_size counts
  int64_t batch = 1;     // sequences
  int64_t tokens = 0;    // of each sequence, the new ones included
  int64_t newTokens = 1; // of each sequence

  int64_t cached() const { return tokens - newTokens; }
  Maxima maxima() const {
    return {.batch = batch, .tokensQ = batch * newTokens, .seqlenQ = newTokens, .seqlenK = tokens};
  }
};

// A way to do a step of decode: by kernels that divide the keys of a query into shares, or by one kernel.
struct StepWay {
  int64_t splits = 0; // 0: the rule's number
  bool isOneKernel = false;

  bool isRule() const { return splits == 0 && !isOneKernel; }
  // As in a stored route: the number of splits, or kTakesStep.
  int64_t number() const { return isOneKernel ? kTakesStep : splits; }
  std::string name() const { return isOneKernel ? std::string(kStepVariant) : std::to_string(splits) + " shares"; }
  auto operator<=>(const StepWay &) const = default;
};
struct TimedWay {
  StepWay way;
  double milliseconds = 0;
};

struct SplitSweep {
  // The first element is the number that the engine chooses by its own rule. A number of shares that divides the keys
  // in the same way as a smaller number is not measured. The last element is the kernel `decode_step`, where it serves.
  std::vector<TimedWay> ways;
  int64_t best = StoredRoute::kNever; // the threshold of splitsRoute (routes.h)
  std::string rule;                   // "4/16/8": the rule's shares by branch
};

// A set of engines, each of which does decode in one way. The engines keep their compiled kernels in one folder, which
// the destructor removes.
class SplitEngines {
public:
  static Result<SplitEngines> open(tools::EngineSettings settings);

  // Returns an engine that does decode in this way. It is created at the first call with this way.
  Result<nsa_engine *> engine(const StepWay &way);

private:
  SplitEngines(tools::EngineSettings settings, tools::ScratchFolder folder)
      : settings(std::move(settings)), folder(std::move(folder)) {}

  tools::EngineSettings settings;
  tools::ScratchFolder folder;
  std::map<StepWay, tools::EngineHandle> engines;
};

// Returns the threshold of the way to take: the fastest number of shares that is 1.2 times as fast as the first way,
// the rule's, or else kNever. Where one kernel was measured, it is kTakesStep, unless that way is 1.05 times as fast as
// the kernel.
int64_t bestOf(const std::vector<TimedWay> &ways);

// Measures the ways in turns. `samples` is the number of steps of each way.
Result<SplitSweep> sweepDecode(BenchDevice &device, SplitEngines &engines, const SplitPoint &point, int samples);

} // namespace nsa::bench
