#include "autotune/workload/stored_choices.h"

#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/graph/routing.h"

namespace nsa {

bool wasExhaustive(const StoredChoice &choice) {
  return choice.provenance.find(" search=exhaustive") != std::string::npos;
}

std::optional<StoredChoice> StoredChoices::find(const TuneJob &job, const std::string &device,
                                                const StoredRules &rules) {
  std::optional<KernelCache::Hit> found = cache->find(job.problem, device);
  if (!found || revisionOf(found->choice.provenance) != rules.revision)
    return std::nullopt;
  if (job.isTuned && (!found->choice.tuned || (rules.exhaustive && !wasExhaustive(found->choice))))
    return std::nullopt;
  return std::move(found->choice);
}

Status StoredChoices::copy(const TuneJob &from, const TuneJob &to, const std::string &device) {
  std::optional<KernelCache::Hit> found = cache->find(from.problem, device);
  if (!found)
    return Status::error(ErrorCode::kIoError, "the kernel of '" + from.problem + "' is not stored");
  found->choice.problem = to.problem;
  return cache->put(found->kernel, &found->choice);
}

std::optional<StoredRoute> StoredChoices::routeOf(const std::string &family, const std::string &device,
                                                  const std::string &name) {
  return cache->findRoute(family, device, name);
}

std::vector<Step> StoredChoices::routedSteps(const Spec &spec, const Maxima &maxima, const RouteRules &rules,
                                             const std::vector<std::string> &devices) {
  std::vector<Step> steps;
  for (const std::string &device : devices) {
    const Routing routing = routingOf(spec, maxima, rules, [&](const std::string &family, const std::string &name) {
      return cache->findRoute(family, device, name);
    });
    for (Step &step : routing.steps())
      steps.push_back(std::move(step));
  }
  return steps;
}

std::set<std::string> StoredChoices::devicesOf(const std::string &target, const std::vector<TuneJob> &jobs) {
  std::set<Operator> operators;
  for (const TuneJob &job : jobs)
    operators.insert(job.kernel.op);
  std::set<std::string> devices;
  for (const Operator op : operators)
    for (const ChoiceSummary &choice : cache->choicesOf(std::string(operatorName(op))))
      if (choice.target == target)
        devices.insert(choice.device);
  return devices;
}

} // namespace nsa
