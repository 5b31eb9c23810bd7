// Lists the kernels that workloads ask to be tuned: every kernel of every call that they name; a problem that several
// calls need is listed once.
// Thread-safety: values and pure functions.
#pragma once

#include "autotune/workload/workload.h"
#include "runtime/engine/graph/routing.h"
#include "runtime/engine/report/timed_shape.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

// A kernel to tune, and the first call that needs it.
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

  // A text that identifies the job: "nsa128 nsa bf16 dense 1x8192 win"
  std::string text() const;
};

// Returns the jobs in the order of the workloads: heads, types, then the layouts, batches and lengths of the forward
// pass, then the pages, batches and lengths of decode. Single plans follow. The kernels of a call are in the order of
// their launches. Where a workload is tuned backward, the kernels of a call's gradient take the place of the call's
// kernels, and where it is tuned in both directions, they follow them. It is an error if a workload that is tuned
// backward has no call with a gradient.
// `rules` are the rules of the engine that makes the calls. The callback `routed` returns the kernels (steps) that a
// call runs when the thresholds that were measured on a device apply. `expand` lists the kernels that `routed` returns
// in addition to the kernels that the call runs without thresholds. For a workload that is limited to certain
// operators, only kernels of these operators are listed. It is an error if a workload is limited to an operator that
// none of its calls needs.
using RoutedSteps = std::function<std::vector<Step>(const Spec &spec, const Maxima &maxima)>;
Result<std::vector<TuneJob>> expand(const std::vector<Workload> &workloads, const RouteRules &rules = {},
                                    const RoutedSteps &routed = nullptr);

// The sizes of the call that a tuning of the kernel measures, and how much of the job's call it is (cutText). Returns
// nullopt for a kernel that is timed within a whole call of decode, whose size the tuner chooses.
struct TimedCall : TimedShape {
  std::string cut;
};
std::optional<TimedCall> timedCall(const TuneJob &job, bool isGpu);

} // namespace nsa
