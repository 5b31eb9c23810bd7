// Lists what workloads ask to be tuned: every kernel of every call that they name, each problem once.
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/engine/pipeline.h"
#include "tools/nsa/tune_workload.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

// One kernel, with the first call that needs it.
struct TuneJob {
  std::string head; // of the workload: its name; of a single plan what heads it has
  Spec spec;        // of the whole call
  Maxima maxima;
  Spec kernel;                        // of this kernel
  std::string role;                   // what the kernel does in the call: "compress", "sel", ...
  std::string problem;                // Problem::key(), under which it is stored
  std::string family;                 // the part of the problem that is compiled in
  bool isTuned = true;                // false: it has no choices, so there is nothing to measure
  std::vector<std::string> workloads; // names of all workloads that need it, in their order

  // "nsa128 nsa bf16 dense 1x8192 win"
  std::string text() const;
};

// Returns the jobs in the order of the workloads: heads, types, then the layouts, batches and lengths of the forward
// pass, then the pages, batches and lengths of decode. Single plans follow. The kernels of a call are in the order of
// their launches.
// `routed` gives the steps of a call by the measured thresholds of some device, where they differ from stepsOf. Two
// sets of kernels are tuned: the kernels that serve by a threshold, and the kernels that serve when the threshold
// changes.
// A workload that is limited to operators has jobs of these alone. An operator that none of its calls has is an error.
using RoutedSteps = std::function<std::vector<Step>(const Spec &spec, const Maxima &maxima)>;
Result<std::vector<TuneJob>> expand(const std::vector<Workload> &workloads, const RoutedSteps &routed = nullptr);

// The work and the size of the run that a tuning times. nullopt for kernels whose work is not counted.
struct TimedWork {
  int64_t batch = 0, seqlenQ = 0, seqlenK = 0;
  double flops = 0, bytes = 0;
  std::string cut{}; // how much of the call is timed (cutText)
};
std::optional<TimedWork> timedWork(const TuneJob &job, bool isGpu);

} // namespace nsa::tools
