// The kernels of a plan: looked up one after another, and those that are missing compiled at the same time.
// Thread-safety: pure but for the planner, whose functions many threads may call at once.
#pragma once

#include "runtime/engine/planner.h"

#include <vector>

namespace nsa {

// The parts in the order of the steps, or the error of the first step that has one. At most `compileThreads` threads
// compile, the caller among them. It is alone where at most one kernel is missing, and where the miss policy is to
// tune, because that measures.
Result<std::vector<PlanCore::Part>> makeParts(Planner &planner, const std::vector<Step> &steps,
                                              const EngineOptions &options);

} // namespace nsa
