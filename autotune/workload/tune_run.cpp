#include "autotune/workload/tune_run.h"

#include "autotune/workload/tune_queue.h"
#include "autotune/workload/tune_record.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/options/cache_settings.h"
#include "runtime/process/run_at_once.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace nsa {
namespace {

using Json = nlohmann::ordered_json;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Devices of one model.
struct Model {
  std::string device; // under which choices are stored
  bool isGpu = false;
  std::vector<TuneDevice> workers;
  std::vector<std::optional<StoredChoice>> stored; // by job: what needs nothing more
  std::vector<Json> records;                       // by job; null: no worker reached it
  std::map<std::string, size_t> made;              // by family of kernels without choices: one that is stored
  std::unique_ptr<TuneQueue> queue;
  Json crossovers = Json::array();
};

class WorkloadRun {
public:
  WorkloadRun(const std::vector<Workload> &workloads, const TuneEnvironment &environment, const TuneRunOptions &options)
      : workloads(workloads), environment(environment), options(options) {}

  Result<Json> run(std::vector<TuneDevice> devices) {
    NSA_RETURN_IF_ERROR(addDevices(std::move(devices)));
    NSA_RETURN_IF_ERROR(findJobs());
    findStored();
    NSA_RETURN_IF_ERROR(checkKept());
    begin = now();
    NSA_RETURN_IF_ERROR(work());
    for (Model &model : models)
      for (const CrossoverJob &job : crossoverJobs(workloads))
        model.crossovers.push_back(crossover(model, job));
    return report();
  }

private:
  Status addDevices(std::vector<TuneDevice> devices);
  Status findJobs();
  void findStored();
  Status work();
  void workFor(Model &model, TuneDevice &worker);
  bool copyMade(Model &model, size_t index);
  void finish(Model &model, const TuneDevice &worker, size_t index, const Result<nlohmann::json> &report,
              double seconds);
  Status checkKept() const;
  // Adds how far the run is, and calls the callback. The caller holds `mutex`, or no other thread runs.
  void tell(TuneProgress progress);
  Json recordOf(const Model &model, size_t index) const;
  Json report();
  Json crossover(Model &model, const CrossoverJob &job);
  Json thresholdsOf(const Model &model);

  const std::vector<Workload> &workloads;
  const TuneEnvironment &environment;
  const TuneRunOptions &options;
  std::vector<TuneJob> jobs;
  std::vector<Model> models;
  double begin = 0;
  std::mutex mutex; // of the callback, and of the records
  std::atomic<bool> isStopped = false;
  std::optional<StoredChoices> stored;
};

Status WorkloadRun::addDevices(std::vector<TuneDevice> devices) {
  for (TuneDevice &device : devices) {
    for (const Model &each : models)
      if (std::ranges::any_of(each.workers, [&](const TuneDevice &worker) { return worker.name == device.name; }))
        return Status::invalid(kDeviceField, device.name, "must stand there once");
    auto model = std::ranges::find(models, device.key, &Model::device);
    if (model == models.end()) {
      models.emplace_back();
      model = models.end() - 1;
      model->device = device.key;
      model->isGpu = device.isGpu;
    }
    model->workers.push_back(std::move(device));
  }
  return Status::ok();
}

Status WorkloadRun::findJobs() {
  // Silent: the engines tell of files that cannot be used.
  stored.emplace(environment.cache, StoredChoices::Access::kWrite, Logger());
  std::vector<std::string> devices;
  for (const Model &model : models)
    devices.push_back(model.device);
  Result<std::vector<TuneJob>> expanded = expand(
      workloads, [&](const Spec &spec, const Maxima &maxima) { return stored->routedSteps(spec, maxima, devices); });
  if (!expanded)
    return expanded.status();
  jobs = std::move(*expanded);
  return Status::ok();
}

Json WorkloadRun::recordOf(const Model &model, size_t index) const {
  Json record = jobRecord(jobs[index], model.device, model.isGpu);
  if (options.describeTimed && record.contains("timed"))
    options.describeTimed(jobs[index], model.isGpu, record["timed"]);
  return record;
}

void WorkloadRun::findStored() {
  for (Model &model : models) {
    std::vector<size_t> wanted;
    model.stored.resize(jobs.size());
    model.records.resize(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!options.again)
        model.stored[i] = stored->find(jobs[i], model.device, {environment.revision, environment.exhaustive});
      if (!model.stored[i]) {
        wanted.push_back(i);
        continue;
      }
      model.records[i] = recordOf(model, i);
      model.records[i]["status"] = "stored";
      if (!jobs[i].isTuned)
        model.made.emplace(jobs[i].family, i);
      addStored(model.records[i], *model.stored[i]);
    }
    model.queue = std::make_unique<TuneQueue>(jobs, std::move(wanted),
                                              TuneQueue::Limits{.totalSeconds = options.budgetSeconds,
                                                                .kernelSeconds = options.kernelSeconds,
                                                                .workers = static_cast<int>(model.workers.size()),
                                                                .now = now});
  }
}

Status WorkloadRun::work() {
  std::vector<std::pair<Model *, TuneDevice *>> all;
  for (Model &model : models)
    for (TuneDevice &worker : model.workers)
      all.emplace_back(&model, &worker);
  return runAtOnce(all.size(), all.size(), {"nsa-measure", "to tune"}, [&](size_t i) {
    workFor(*all[i].first, *all[i].second);
    return Status::ok();
  });
}

void WorkloadRun::workFor(Model &model, TuneDevice &worker) {
  std::string family;
  while (!isStopped) {
    const std::optional<TuneQueue::Ticket> ticket = model.queue->take(family);
    if (!ticket)
      return;
    const TuneJob &job = jobs[ticket->job];
    family = job.family;
    {
      const std::lock_guard lock(mutex);
      tell({.secondsLeft = {}, .what = job.text(), .problem = job.problem});
    }
    if (isStopped)
      return;
    const double start = now();
    Result<nlohmann::json> report = nlohmann::json::object();
    if (!copyMade(model, ticket->job)) {
      const Result<std::string> text = worker.tuneKernel(job, ticket->seconds);
      report = text ? nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false)
                    : Result<nlohmann::json>(text.status());
    }
    model.queue->finish(ticket->job);
    finish(model, worker, ticket->job, report, now() - start);
  }
}

// Kernels without choices are the same for all lengths: one is made, the others are its copies.
bool WorkloadRun::copyMade(Model &model, size_t index) {
  if (jobs[index].isTuned)
    return false;
  std::optional<size_t> from;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = model.made.find(jobs[index].family); found != model.made.end())
      from = found->second;
  }
  return from && stored->copy(jobs[*from], jobs[index], model.device).isOk();
}

void WorkloadRun::finish(Model &model, const TuneDevice &worker, size_t index, const Result<nlohmann::json> &report,
                         double seconds) {
  const TuneJob &job = jobs[index];
  Json record = recordOf(model, index);
  record["on"] = worker.name;
  record["seconds"] = seconds;
  Status failure = report.status();
  if (report) {
    addReport(record, *report);
    if (const std::string trouble = report->value("store_trouble", ""); !trouble.empty())
      failure = Status::error(ErrorCode::kIoError, trouble);
  }
  const bool elsewhere = report && report->value("tuned_elsewhere", false);
  const bool measured = report && report->value("tuned", true);
  record["status"] = !failure.isOk() ? "failed"
                     : !job.isTuned  ? "made"
                     : elsewhere     ? "tuned elsewhere"
                     : measured      ? "tuned"
                                     : "left"; // its share of the budget was too little
  if (!failure.isOk())
    record["error"] = report ? failure.error().message : failure.toString();
  const std::lock_guard lock(mutex);
  tell({.secondsLeft = {}, .what = job.text(), .problem = job.problem, .failure = failure, .record = &record});
  if (record["status"] == "made")
    model.made.emplace(job.family, index);
  model.records[index] = std::move(record);
}

// Said before the budget is spent, not with each kernel.
Status WorkloadRun::checkKept() const {
  const bool makes = std::ranges::any_of(models, [](const Model &model) { return model.queue->state().total > 0; });
  return makes ? KernelCache({.path = environment.cache.path}, Logger()).checkKept() : Status::ok();
}

void WorkloadRun::tell(TuneProgress progress) {
  if (!options.tell)
    return;
  bool known = true;
  double longest = 0;
  for (const Model &model : models) {
    const TuneQueue::State state = model.queue->state();
    progress.done += state.done;
    progress.total += state.total;
    known = known && (state.secondsLeft || state.total == 0);
    longest = std::max(longest, state.secondsLeft.value_or(0));
  }
  if (known)
    progress.secondsLeft = longest;
  if (!options.tell(progress))
    isStopped = true;
}

// What is stored of the crossover with dense attention, or measured by one device of the model once all kernels are
// there: an earlier answer does not hold for kernels that are new.
Json WorkloadRun::crossover(Model &model, const CrossoverJob &job) {
  const auto isNew = [&](size_t i) {
    return model.records[i].is_object() && model.records[i].value("status", "") == "tuned" &&
           definitionOf(jobs[i].spec.op).isForward() && crossoverFamily(jobs[i].spec, job.batch) == job.family;
  };
  bool isStale = options.again;
  for (size_t i = 0; i < jobs.size(); ++i)
    isStale = isStale || isNew(i);
  std::optional<StoredRoute> route = stored->routeOf(job.family, model.device, kCrossoverRoute);
  std::string status = "stored", error;
  if (isStale || !route || !answers(*route, job, environment.revision)) {
    const TuneDevice &worker = model.workers.front();
    const auto isOver = [&](double seconds) {
      if (!worker.measureDuel)
        return true;
      if (!isStopped)
        tell({.secondsLeft = {}, .what = job.text(), .isCrossover = true});
      return isStopped || (options.budgetSeconds > 0 && now() - begin + seconds > options.budgetSeconds);
    };
    Result<std::optional<StoredRoute>> measured =
        measureCrossover(job, {worker.measureDuel, model.device, environment.revision, isOver});
    route = measured ? std::move(*measured) : std::nullopt;
    status = !measured ? "failed" : route ? "measured" : "left";
    const Status kept = route ? stored->put(*route) : measured.status();
    error = kept.isOk() ? "" : kept.toString();
    if (route && !kept.isOk())
      status = "failed";
  }
  Json record = crossoverRecord(job, route ? &*route : nullptr);
  record["device"] = model.device;
  record["status"] = status;
  if (!error.empty())
    record["error"] = error;
  if (status == "measured")
    tell({.secondsLeft = {}, .what = job.text(), .isCrossover = true, .record = &record});
  return record;
}

// The thresholds of the routes that the records of the workloads' kernels name.
Json WorkloadRun::thresholdsOf(const Model &model) {
  Json thresholds = Json::array();
  std::set<std::pair<std::string, std::string>> wanted;
  for (const Json &record : model.records)
    if (record.contains("route"))
      wanted.emplace(record["route"].value("family", ""), record["route"].value("name", ""));
  for (const auto &[family, name] : wanted)
    if (const std::optional<StoredRoute> route = stored->routeOf(family, model.device, name))
      thresholds.push_back({{"family", family},
                            {"device", model.device},
                            {"name", name},
                            {"never", route->threshold == StoredRoute::kNever},
                            {"threshold", route->threshold},
                            {"measured", route->evidence.size()},
                            {"provenance", route->provenance}});
  return thresholds;
}

Json WorkloadRun::report() {
  const double seconds = now() - begin;
  Json report = {{"report", "nsa tune"},
                 {"workload", titleOf(workloads)},
                 {"operators", operatorNames(workloads)},
                 {"cache", environment.cache.path},
                 {"compiler", environment.revision},
                 {"exhaustive", environment.exhaustive},
                 {"budget_seconds", options.budgetSeconds},
                 {"seconds", seconds},
                 {"interrupted", isStopped.load()}};
  Json counts = emptyCounts();
  Json devices = Json::array(), kernels = Json::array(), thresholds = Json::array(), crossovers = Json::array();
  for (Model &model : models) {
    Json names = Json::array();
    for (const TuneDevice &worker : model.workers)
      names.push_back(worker.name);
    devices.push_back({{"device", model.device}, {"names", std::move(names)}});
    for (size_t i = 0; i < jobs.size(); ++i) {
      Json &record = model.records[i];
      if (record.is_null()) {
        record = recordOf(model, i);
        record["status"] = "left";
      }
      countOne(counts, record.value("status", ""));
    }
    for (Json &threshold : thresholdsOf(model))
      thresholds.push_back(std::move(threshold));
    std::ranges::move(model.records, std::back_inserter(kernels));
    std::ranges::move(model.crossovers, std::back_inserter(crossovers));
  }
  report["counts"] = std::move(counts);
  report["workloads"] = workloadReports(workloads, kernels);
  report["devices"] = std::move(devices);
  report["thresholds"] = std::move(thresholds);
  report["crossovers"] = std::move(crossovers);
  report["kernels"] = std::move(kernels);
  return report;
}

} // namespace

Result<TuneEnvironment> TuneEnvironment::of(const EngineOptions &options) {
  Result<std::shared_ptr<const CompilerLibrary>> compiler = CompilerLibrary::open(options.compilerPath);
  if (!compiler)
    return compiler.status();
  Logger logger(options.log, *options.logLevel);
  std::vector<std::string> warnings;
  Result<CacheSettings> cache = settingsOf(options, warnings);
  if (!cache)
    return cache.status();
  for (const std::string &warning : warnings)
    logger.log(LogLevel::kWarning, "cache", warning);
  return TuneEnvironment{.revision = (*compiler)->sourceId(),
                         .templateDir = options.templateDir,
                         .cpuFeatures = options.cpuFeatures,
                         .cache = std::move(*cache),
                         .logger = std::move(logger),
                         .compileThreads = options.compileThreads,
                         .kernelSeconds = options.tuneBudgetSeconds,
                         .exhaustive = options.tuneExhaustive};
}

Result<nlohmann::ordered_json> runWorkloads(const std::vector<Workload> &workloads, const TuneEnvironment &environment,
                                            std::vector<TuneDevice> devices, const TuneRunOptions &options) {
  return WorkloadRun(workloads, environment, options).run(std::move(devices));
}

} // namespace nsa
