// What workloads ask to be tuned: every kernel of every call that they name, each problem once.
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

// One kernel, of the first call that needs it.
struct TuneJob {
  std::string head; // of the workload
  Spec spec;        // of the whole call: nsa or decode
  Maxima maxima;
  Spec kernel;                        // of the kernel alone
  std::string role;                   // what it does in the call: "compress", "sel", ...
  std::string problem;                // Problem::key(): under which it is stored
  std::string family;                 // the part of it that is compiled in
  bool isTuned = true;                // else it has no choices: there is only one to make
  std::vector<std::string> workloads; // names of those that need it, in order

  // "nsa128 nsa bf16 dense 1x8192 win"
  std::string text() const;
};

// In the workloads' order: heads, types, then the forward's layouts, batches and lengths, then decode's pages, batches
// and lengths; of each call its kernels in the order of their launches.
// `routed`: the steps of a call as measured thresholds have them on some device, where they are not what stepsOf gives.
// Both are tuned: what serves by a threshold, and what serves when it changes.
// Of workloads that are limited to operators these alone; one that none of their calls has is an error.
using RoutedSteps = std::function<std::vector<Step>(const Spec &spec, const Maxima &maxima)>;
Result<std::vector<TuneJob>> expand(const std::vector<Workload> &workloads, const RoutedSteps &routed = nullptr);

// What a run of the kernel that a tuning times has to do, and how large it is; nothing for kernels whose work is not
// counted.
struct TimedWork {
  int64_t batch = 0, seqlenQ = 0, seqlenK = 0;
  double flops = 0, bytes = 0;
  bool isCut = false; // smaller than the call
};
std::optional<TimedWork> timedWork(const TuneJob &job, bool isGpu);

} // namespace nsa::tools
