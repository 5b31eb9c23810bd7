#include "autotune/workload/stored_choices.h"

#include "runtime/base/cpu_features.h"
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/engine/graph/routing.h"

#include <algorithm>
#include <iterator>

namespace nsa {

bool wasExhaustive(const StoredChoice &choice) {
  return choice.provenance.find(" search=exhaustive") != std::string::npos;
}

std::optional<StoredChoice> findStoredChoice(KernelCache &cache, const TuneJob &job, const std::string &device,
                                             const StoredRules &rules) {
  std::optional<KernelCache::Hit> found = cache.find(job.problem, device);
  if (!found || revisionOf(found->choice.provenance) != rules.revision)
    return std::nullopt;
  if (job.isTuned && (!found->choice.tuned || (rules.exhaustive && !wasExhaustive(found->choice))))
    return std::nullopt;
  return std::move(found->choice);
}

Status copyStored(KernelCache &cache, const TuneJob &from, const TuneJob &to, const std::string &device) {
  std::optional<KernelCache::Hit> found = cache.find(from.problem, device);
  if (!found)
    return Status::error(ErrorCode::kIoError, "the kernel of '" + from.problem + "' is not stored");
  found->choice.problem = to.problem;
  return cache.put(found->kernel, &found->choice);
}

Result<std::vector<TuneJob>> expandRouted(const std::vector<Workload> &workloads, const RouteRules &rules,
                                          KernelCache &cache, const std::vector<RoutedDevice> &devices) {
  return expand(workloads, rules, [&](const Spec &spec, const Maxima &maxima) {
    std::vector<Step> steps;
    for (const RoutedDevice &device : devices) {
      RouteRules own = rules;
      own.mayStep = device.runsStep;
      const Routing routing = routingOf(spec, maxima, own, [&](const std::string &family, const std::string &name) {
        return cache.findRoute(family, device.key, name);
      });
      std::ranges::move(routing.steps(), std::back_inserter(steps));
    }
    return steps;
  });
}

std::set<std::string> devicesOf(KernelCache &cache, const std::string &target, const std::vector<TuneJob> &jobs) {
  std::set<Operator> operators;
  for (const TuneJob &job : jobs)
    operators.insert(job.kernel.op);
  std::set<std::string> devices;
  for (const Operator op : operators)
    for (const ChoiceSummary &choice : cache.choicesOf(std::string(operatorName(op))))
      if (choice.target == target)
        devices.insert(choice.device);
  return devices;
}

Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures) {
  if (target != "cpu")
    return choiceDeviceOf(target, templateDir);
  // As the compiler chooses them.
  const std::string features = cpuFeatures.empty() ? std::string(hostCpuFeatures()) : cpuFeatures;
  if (features.empty())
    return Status::invalid("target", "cpu", "needs a processor with AVX2 and FMA",
                           "name what to compile for with NSA_CPU_FEATURES");
  return choiceDeviceOf("cpu " + features, templateDir);
}

} // namespace nsa
