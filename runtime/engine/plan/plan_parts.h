// Makes the kernels of a plan. makeParts looks the kernels of a plan up one after another, and compiles the missing
// kernels at the same time.
// Thread-safety: many threads may call makeParts at once.
#pragma once

#include "runtime/engine/plan/planner.h"

#include <vector>

namespace nsa {

// Returns the parts of a plan in the order of the steps, or the error of the first step that has an error. At most
// `compileThreads` threads compile, and the caller is one of them. Only the calling thread compiles if at most one
// kernel is missing, or if the miss policy is `tune`, because other threads that compile would disturb the measured
// times.
Result<std::vector<PlanCore::Part>> makeParts(Planner &planner, const std::vector<Step> &steps,
                                              const EngineOptions &options);

} // namespace nsa
