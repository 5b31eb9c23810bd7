#include "runtime/engine/plan/plan_parts.h"

#include "runtime/process/run_at_once.h"

#include <algorithm>
#include <utility>

namespace nsa {

Result<std::vector<PlanCore::Part>> makeParts(Planner &planner, const std::vector<Step> &steps,
                                              const EngineOptions &options) {
  std::vector<Planner::Search> searches;
  std::vector<std::shared_ptr<const KernelCore>> kernels;
  std::vector<std::vector<size_t>> missing; // steps, those that want the same kernel together
  for (size_t i = 0; i < steps.size(); ++i) {
    searches.push_back(planner.begin(steps[i].spec, steps[i].maxima));
    kernels.push_back(planner.find(searches[i]));
    if (kernels[i])
      continue;
    auto same = std::find_if(missing.begin(), missing.end(), [&](const std::vector<size_t> &others) {
      return searches[others.front()].request.key == searches[i].request.key;
    });
    if (same == missing.end())
      missing.push_back({i});
    else
      same->push_back(i);
  }

  const bool measures = *options.missPolicy == MissPolicy::kTune;
  const size_t threads = measures ? 1 : static_cast<size_t>(std::max(options.compileThreads, 1));
  NSA_RETURN_IF_ERROR(runAtOnce(missing.size(), threads, {"nsa-compile", "to make a kernel"}, [&](size_t group) {
    for (const size_t i : missing[group]) {
      // What the first of them has left behind serves the others.
      if (i != missing[group].front() && (kernels[i] = planner.find(searches[i])))
        continue;
      NSA_ASSIGN_OR_RETURN(kernels[i], planner.make(searches[i]));
    }
    return Status::ok();
  }));

  std::vector<PlanCore::Part> parts;
  for (size_t i = 0; i < steps.size(); ++i)
    parts.push_back({steps[i], std::move(kernels[i])});
  return parts;
}

} // namespace nsa
