#include "tools/nsa/tune/tune_plan.h"

#include "runtime/engine/options/options.h"
#include "tools/nsa/tune/stored_choices.h"
#include "tools/nsa/tune/target_device.h"
#include "tools/nsa/tune/tune_crossover.h"
#include "tools/nsa/tune/tune_record.h"

#include <algorithm>
#include <set>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;

// For the estimate: what a kernel takes on ordinary machines. The tuner compiles so many candidates of a family.
constexpr double kCandidates = 32;
constexpr double kGpuCompileSeconds = 0.9, kCpuCompileSeconds = 0.1, kMeasureSeconds = 1;

struct Place {
  std::string device;
  bool isGpu = false;
};

Result<std::vector<Place>> placesOf(const TunePlanOptions &options, StoredChoices &stored,
                                    const std::vector<TuneJob> &jobs, const TuneEnvironment &environment) {
  std::vector<Place> places;
  for (const std::string &target : options.targets) {
    std::set<std::string> known = stored.devicesOf(target, jobs);
    if (known.empty()) {
      Result<std::string> device = targetDevice(target, environment.templateDir, environment.cpuFeatures);
      if (!device)
        return device.status();
      known.insert(std::move(*device));
    }
    for (const std::string &device : known)
      places.push_back({device, target != "cpu"});
  }
  for (const std::string &device : options.targets.empty() ? options.devices : std::vector<std::string>()) {
    EngineSettings settings = options.engine;
    settings.device = device;
    Result<EngineHandle> engine = createEngine(settings);
    if (!engine)
      return engine.status();
    Result<nlohmann::json> description = describeEngine(engine->get());
    if (!description)
      return description.status();
    const nlohmann::json &facts = (*description)["device"];
    Place place{facts.value("choice_key", ""), facts.value("kind", "") == "gpu"};
    if (std::ranges::none_of(places, [&](const Place &each) { return each.device == place.device; }))
      places.push_back(std::move(place));
  }
  return places;
}

} // namespace

Result<Json> planWorkloads(const std::vector<Workload> &workloads, const TunePlanOptions &options) {
  Result<std::vector<TuneJob>> jobs = expand(workloads);
  if (!jobs)
    return jobs.status();
  Result<TuneEnvironment> environment = tuneEnvironment(options.engine);
  if (!environment)
    return environment.status();
  StoredChoices stored(environment->cache, StoredChoices::Access::kRead, environment->logger);
  Result<std::vector<Place>> places = placesOf(options, stored, *jobs, *environment);
  if (!places)
    return places.status();
  std::vector<std::string> names;
  for (const Place &place : *places)
    names.push_back(place.device);
  jobs = expand(workloads,
                [&](const Spec &spec, const Maxima &maxima) { return stored.routedSteps(spec, maxima, names); });

  const StoredRules rules{environment->revision, environment->exhaustive};
  Json devices = Json::array(), kernels = Json::array(), crossovers = Json::array();
  for (const Place &place : *places) {
    int measure = 0, make = 0, nothing = 0;
    std::set<std::string> families;
    for (const TuneJob &job : *jobs) {
      const bool isStored = !options.again && stored.find(job, place.device, rules);
      const char *todo = isStored ? "nothing" : job.isTuned ? "measure" : "make";
      ++(isStored ? nothing : job.isTuned ? measure : make);
      if (!isStored && job.isTuned)
        families.insert(job.family);
      kernels.push_back({{"do", todo},
                         {"problem", job.problem},
                         {"device", place.device},
                         {"workloads", job.workloads},
                         {"operator", operatorName(job.kernel.op)},
                         {"role", job.role},
                         {"for", job.text()}});
    }
    for (const CrossoverJob &job : crossoverJobs(workloads)) {
      const std::optional<StoredRoute> route = stored.routeOf(job.family, place.device, kCrossoverRoute);
      // What is measured anew makes an earlier answer stale.
      const bool isThere = measure == 0 && !options.again && route && answers(*route, job, environment->revision);
      crossovers.push_back({{"do", isThere ? "nothing" : "measure"}, {"device", place.device}, {"for", job.text()}});
    }
    const double compileSeconds = place.isGpu ? kGpuCompileSeconds : kCpuCompileSeconds;
    const double perKernel = environment->kernelSeconds;
    double about =
        (static_cast<double>(families.size()) * kCandidates + make) * compileSeconds / environment->compileThreads +
        measure * std::min(kMeasureSeconds, perKernel);
    double most = measure * perKernel + make * compileSeconds;
    if (options.budgetSeconds > 0)
      most = std::min(most, options.budgetSeconds);
    about = std::min(about, most);
    devices.push_back({{"device", place.device},
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
    for (const TuneJob &job : *jobs) {
      const bool needs = std::ranges::find(job.workloads, workload.name) != job.workloads.end();
      total += needs;
      shared += needs && job.workloads.size() > 1;
    }
    each.push_back({{"name", workload.name}, {"kernels", total}, {"shared", shared}});
  }
  return Json{
      {"workload", titleOf(workloads)},   {"operators", operatorNames(workloads)}, {"workloads", std::move(each)},
      {"cache", environment->cache.path}, {"packs", environment->cache.packs},     {"compiler", environment->revision},
      {"devices", std::move(devices)},    {"crossovers", std::move(crossovers)},   {"kernels", std::move(kernels)}};
}

} // namespace nsa::tools
