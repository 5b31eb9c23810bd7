#include "autotune/workload/tune_plan.h"

#include "autotune/workload/stored_choices.h"
#include "autotune/workload/tune_crossover.h"
#include "autotune/workload/tune_record.h"

#include <algorithm>
#include <set>

namespace nsa {
namespace {

using Json = nlohmann::ordered_json;

// For the estimate: what a kernel takes on ordinary machines. The tuner compiles so many candidates of a family.
constexpr double kCandidates = 32;
constexpr double kGpuCompileSeconds = 0.9, kCpuCompileSeconds = 0.1, kMeasureSeconds = 1;

} // namespace

bool targetRunsStep(const std::string &target) { return target == kStepTarget; }

Result<std::vector<TunePlace>> placesOfTarget(const std::string &target, const std::vector<Workload> &workloads,
                                              const TuneEnvironment &environment) {
  const RouteRules rules{.mayStep = targetRunsStep(target)};
  NSA_ASSIGN_OR_RETURN(std::vector<TuneJob> jobs, expand(workloads, {}, [&](const Spec &spec, const Maxima &maxima) {
                         return routingOf(spec, maxima, rules).steps();
                       }));
  std::set<std::string> known = devicesOf(*environment.cache, target, jobs);
  if (known.empty()) {
    NSA_ASSIGN_OR_RETURN(std::string device, targetDevice(target, environment.templateDir, environment.cpuFeatures));
    known.insert(std::move(device));
  }
  std::vector<TunePlace> places;
  for (const std::string &device : known)
    places.push_back({device, target != "cpu", targetRunsStep(target)});
  return places;
}

Result<TunePlan> planWorkloads(const std::vector<Workload> &workloads, const TuneEnvironment &environment,
                               const std::vector<TunePlace> &places, const TuneLimits &limits) {
  KernelCache &cache = *environment.cache;
  std::vector<RoutedDevice> routed;
  for (const TunePlace &place : places)
    routed.push_back({place.key, place.runsStep});
  NSA_ASSIGN_OR_RETURN(const std::vector<TuneJob> jobs, expandRouted(workloads, environment.routes, cache, routed));

  TunePlan plan;
  const StoredRules rules{environment.revision, environment.exhaustive};
  Json devices = Json::array(), kernels = Json::array(), crossovers = Json::array();
  for (const TunePlace &place : places) {
    int measure = 0, make = 0, nothing = 0;
    std::set<std::string> families;
    for (const TuneJob &job : jobs) {
      const bool isStored = !limits.again && findStoredChoice(cache, job, place.key, rules);
      const char *todo = isStored ? "nothing" : job.isTuned ? "measure" : "make";
      ++(isStored ? nothing : job.isTuned ? measure : make);
      if (!isStored && job.isTuned)
        families.insert(job.family);
      kernels.push_back({{"do", todo},
                         {"problem", job.problem},
                         {"device", place.key},
                         {"workloads", job.workloads},
                         {"operator", operatorName(job.kernel.op)},
                         {"role", job.role},
                         {"for", job.text()}});
    }
    for (const CrossoverJob &job : crossoverJobs(workloads)) {
      const std::optional<StoredRoute> route = cache.findRoute(job.family, place.key, kCrossoverRoute);
      // What is measured anew makes an earlier answer stale.
      const bool isThere = measure == 0 && !limits.again && route && answers(*route, job, environment.revision);
      crossovers.push_back({{"do", isThere ? "nothing" : "measure"}, {"device", place.key}, {"for", job.text()}});
    }
    const double compileSeconds = place.isGpu ? kGpuCompileSeconds : kCpuCompileSeconds;
    const double perKernel = limits.kernelSeconds > 0 ? limits.kernelSeconds : environment.kernelSeconds;
    double about =
        (static_cast<double>(families.size()) * kCandidates + make) * compileSeconds / environment.compileThreads +
        measure * std::min(kMeasureSeconds, perKernel);
    double most = measure * perKernel + make * compileSeconds;
    if (limits.budgetSeconds > 0)
      most = std::min(most, limits.budgetSeconds);
    about = std::min(about, most);
    plan.kernels += jobs.size();
    plan.stored += static_cast<size_t>(nothing);
    devices.push_back({{"device", place.key},
                       {"measure", measure},
                       {"make", make},
                       {"stored", nothing},
                       {"families", families.size()},
                       {"seconds_about", about},
                       {"seconds_at_most", most}});
  }
  Json each = Json::array();
  for (const Workload &workload : workloads) {
    int total = 0, shared = 0;
    for (const TuneJob &job : jobs) {
      const bool needs = std::ranges::find(job.workloads, workload.name) != job.workloads.end();
      total += needs;
      shared += needs && job.workloads.size() > 1;
    }
    each.push_back({{"name", workload.name}, {"kernels", total}, {"shared", shared}});
  }
  plan.report = {{"workload", titleOf(workloads)},
                 {"direction", directionOf(workloads)},
                 {"operators", operatorNames(workloads)},
                 {"workloads", std::move(each)},
                 {"cache", cache.path()},
                 {"packs", cache.packPaths()},
                 {"compiler", environment.revision},
                 {"devices", std::move(devices)},
                 {"crossovers", std::move(crossovers)},
                 {"kernels", std::move(kernels)}};
  return plan;
}

} // namespace nsa
