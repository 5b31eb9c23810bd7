#include "tools/nsa/tune_plan.h"

#include "runtime/engine/options.h"
#include "runtime/engine/template_folder.h"
#include "tools/nsa/stored_choices.h"

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

Result<std::vector<Place>> placesOf(const TunePlanOptions &options, StoredChoices &stored, const std::string &suffix) {
  std::vector<Place> places;
  for (const std::string &target : options.targets) {
    std::vector<std::string> known = stored.devicesOf(target);
    if (known.empty())
      known = {target + suffix};
    for (std::string &device : known)
      places.push_back({std::move(device), target != "cpu"});
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
    Place place{facts.value("key", "") + suffix, facts.value("kind", "") == "gpu"};
    if (std::ranges::none_of(places, [&](const Place &each) { return each.device == place.device; }))
      places.push_back(std::move(place));
  }
  return places;
}

} // namespace

Result<Json> planWorkload(const Workload &workload, const TunePlanOptions &options) {
  Result<std::vector<TuneJob>> jobs = expand(workload);
  if (!jobs)
    return jobs.status();
  Result<TuneEnvironment> environment = tuneEnvironment(options.engine);
  if (!environment)
    return environment.status();
  std::string suffix;
  if (!environment->templateDir.empty()) {
    Result<std::string> digest = digestTemplateFolder(environment->templateDir);
    if (!digest)
      return digest.status();
    suffix = " templates=" + *digest;
  }
  Result<StoredChoices> stored = StoredChoices::open(environment->cachePath);
  if (!stored)
    return stored.status();
  Result<std::vector<Place>> places = placesOf(options, *stored, suffix);
  if (!places)
    return places.status();

  Json devices = Json::array(), kernels = Json::array();
  for (const Place &place : *places) {
    int measure = 0, make = 0, nothing = 0;
    std::set<std::string> families;
    for (const TuneJob &job : *jobs) {
      const bool isStored = !options.again && stored->find(job, place.device, environment->revision);
      const char *todo = isStored ? "nothing" : job.isTuned ? "measure" : "make";
      ++(isStored ? nothing : job.isTuned ? measure : make);
      if (!isStored && job.isTuned)
        families.insert(job.family);
      kernels.push_back({{"do", todo},
                         {"problem", job.problem},
                         {"device", place.device},
                         {"operator", operatorName(job.kernel.op)},
                         {"role", job.role},
                         {"for", job.text()}});
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
  return Json{{"workload", workload.name},
              {"cache", environment->cachePath},
              {"compiler", environment->revision},
              {"devices", std::move(devices)},
              {"kernels", std::move(kernels)}};
}

} // namespace nsa::tools
