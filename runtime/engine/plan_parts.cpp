#include "runtime/engine/plan_parts.h"

#include "runtime/base/signals_blocked.h"
#include "runtime/engine/attempt.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <pthread.h>
#include <thread>
#include <utility>

namespace nsa {

namespace {

// Calls work(0) to work(count - 1), begun in this order, on up to `threads` threads of which the caller is one. Once
// one has failed no other is begun, so the first that fails is always the same.
Status runAtOnce(size_t count, size_t threads, const std::function<Status(size_t)> &work) {
  std::vector<Status> results(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  auto takeTurns = [&] {
    for (size_t i; !failed.load() && (i = next++) < count;)
      if (results[i] = attempt("to make a kernel", [&] { return work(i); }); !results[i].isOk())
        failed.store(true);
  };
  {
    std::vector<std::jthread> helpers;
    helpers.reserve(std::min(count, threads));
    for (size_t i = 1; i < std::min(count, threads); ++i) {
      try {
        SignalsBlocked blocked;
        helpers.emplace_back(takeTurns);
        pthread_setname_np(helpers.back().native_handle(), "nsa-compile");
      } catch (const std::exception &) {
        break; // fewer threads than wished: those that exist, and the caller, do the work
      }
    }
    takeTurns();
  }
  for (Status &result : results)
    NSA_RETURN_IF_ERROR(std::move(result));
  return Status::ok();
}

} // namespace

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
      return searches[others.front()].core->problemKey == searches[i].core->problemKey;
    });
    if (same == missing.end())
      missing.push_back({i});
    else
      same->push_back(i);
  }

  const bool measures = *options.missPolicy == MissPolicy::kTune;
  const size_t threads = measures ? 1 : static_cast<size_t>(std::max(options.compileThreads, 1));
  NSA_RETURN_IF_ERROR(runAtOnce(missing.size(), threads, [&](size_t group) {
    for (const size_t i : missing[group]) {
      // What the first of them has left behind serves the others.
      if (i != missing[group].front() && (kernels[i] = planner.find(searches[i])))
        continue;
      Result<std::shared_ptr<const KernelCore>> made = planner.make(searches[i]);
      if (!made)
        return made.status();
      kernels[i] = std::move(*made);
    }
    return Status::ok();
  }));

  std::vector<PlanCore::Part> parts;
  for (size_t i = 0; i < steps.size(); ++i)
    parts.push_back({steps[i], std::move(kernels[i])});
  return parts;
}

} // namespace nsa
