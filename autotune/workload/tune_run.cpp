#include "autotune/workload/tune_run.h"

#include "autotune/workload/tune_queue.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/options/cache_settings.h"
#include "runtime/engine/report/stopwatch.h"
#include "runtime/process/run_at_once.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace nsa {
namespace {

using Json = nlohmann::ordered_json;

// Devices of one model.
struct Model {
  std::string device; // under which choices are stored
  bool isGpu = false, runsStep = false;
  std::vector<TuneDevice> workers;
  std::vector<std::optional<StoredChoice>> stored; // by job: what needs nothing more
  std::vector<TuneRow> rows;                       // by job
  std::map<std::string, size_t> made;              // by family of kernels without choices: one that is stored
  std::unique_ptr<TuneQueue> queue;
  Json crossovers = Json::array();
};

class WorkloadRun {
public:
  WorkloadRun(const std::vector<Workload> &workloads, const TuneEnvironment &environment, const TuneRunOptions &options)
      : workloads(workloads), environment(environment), options(options) {}

  Result<TuneOutcome> run(std::vector<TuneDevice> devices) {
    NSA_RETURN_IF_ERROR(addDevices(std::move(devices)));
    NSA_RETURN_IF_ERROR(findJobs());
    findStored();
    NSA_RETURN_IF_ERROR(checkKept());
    begin = monotonicSeconds();
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
  TuneRow rowOf(const Model &model, size_t index, TuneState state) const;
  TuneOutcome report();
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
      model->runsStep = device.runsStep;
    }
    model->workers.push_back(std::move(device));
  }
  return Status::ok();
}

Status WorkloadRun::findJobs() {
  environment.cache->open(); // for writing, where it exists
  std::vector<RoutedDevice> devices;
  for (const Model &model : models)
    devices.push_back({model.device, model.runsStep});
  NSA_ASSIGN_OR_RETURN(jobs, expandRouted(workloads, environment.routes, *environment.cache, devices));
  return Status::ok();
}

TuneRow WorkloadRun::rowOf(const Model &model, size_t index, TuneState state) const {
  TuneRow row{&jobs[index], state, jobRecord(jobs[index], model.device, model.isGpu)};
  row.json["status"] = tuneStateName(state);
  if (options.describeTimed && row.json.contains("timed"))
    options.describeTimed(jobs[index], model.isGpu, row.json["timed"]);
  return row;
}

void WorkloadRun::findStored() {
  for (Model &model : models) {
    std::vector<size_t> wanted;
    model.stored.resize(jobs.size());
    model.rows.resize(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      model.rows[i].job = &jobs[i];
      if (!options.limits.again)
        model.stored[i] =
            findStoredChoice(*environment.cache, jobs[i], model.device, {environment.revision, environment.exhaustive});
      if (!model.stored[i]) {
        wanted.push_back(i);
        continue;
      }
      model.rows[i] = rowOf(model, i, TuneState::kStored);
      if (!jobs[i].isTuned)
        model.made.emplace(jobs[i].family, i);
      addStored(model.rows[i].json, *model.stored[i]);
    }
    model.queue = std::make_unique<TuneQueue>(jobs, std::move(wanted),
                                              TuneQueue::Limits{.totalSeconds = options.limits.budgetSeconds,
                                                                .kernelSeconds = options.limits.kernelSeconds,
                                                                .workers = static_cast<int>(model.workers.size()),
                                                                .now = monotonicSeconds});
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
    const double start = monotonicSeconds();
    Result<nlohmann::json> report = nlohmann::json::object();
    if (!copyMade(model, ticket->job)) {
      const Result<std::string> text = worker.tuneKernel(job, ticket->seconds);
      report = text ? nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false)
                    : Result<nlohmann::json>(text.status());
    }
    model.queue->finish(ticket->job);
    finish(model, worker, ticket->job, report, monotonicSeconds() - start);
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
  return from && copyStored(*environment.cache, jobs[*from], jobs[index], model.device).isOk();
}

void WorkloadRun::finish(Model &model, const TuneDevice &worker, size_t index, const Result<nlohmann::json> &report,
                         double seconds) {
  const TuneJob &job = jobs[index];
  Status failure = report.status();
  if (report)
    if (const std::string trouble = report->value("store_trouble", ""); !trouble.empty())
      failure = Status::error(ErrorCode::kIoError, trouble);
  const bool elsewhere = report && report->value("tuned_elsewhere", false);
  const bool measured = report && report->value("tuned", true);
  TuneRow row = rowOf(model, index,
                      !failure.isOk() ? TuneState::kFailed
                      : !job.isTuned  ? TuneState::kMade
                      : elsewhere     ? TuneState::kTunedElsewhere
                      : measured      ? TuneState::kTuned
                                      : TuneState::kLeft); // its share of the budget was too little
  row.json["on"] = worker.name;
  row.json["seconds"] = seconds;
  if (report)
    addReport(row.json, *report);
  if (!failure.isOk())
    row.json["error"] = report ? failure.error().message : failure.toString();
  const std::lock_guard lock(mutex);
  tell({.secondsLeft = {},
        .what = job.text(),
        .problem = job.problem,
        .failure = failure,
        .state = row.state,
        .record = &row.json});
  if (row.state == TuneState::kMade)
    model.made.emplace(job.family, index);
  model.rows[index] = std::move(row);
}

// Said before the budget is spent, not with each kernel.
Status WorkloadRun::checkKept() const {
  const bool makes = std::ranges::any_of(models, [](const Model &model) { return model.queue->state().total > 0; });
  return makes ? environment.cache->checkKept() : Status::ok();
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
    return model.rows[i].state == TuneState::kTuned && definitionOf(jobs[i].spec.op).isForward() &&
           crossoverFamily(jobs[i].spec, job.batch) == job.family;
  };
  bool isStale = options.limits.again;
  for (size_t i = 0; i < jobs.size(); ++i)
    isStale = isStale || isNew(i);
  std::optional<StoredRoute> route = environment.cache->findRoute(job.family, model.device, kCrossoverRoute);
  std::string status = "stored", error;
  const TuneDevice &worker = model.workers.front();
  const bool isMissing = isStale || !route || !answers(*route, job, environment.revision);
  if (isMissing && !worker.measureDuel) {
    route.reset();
    status = "left";
  } else if (isMissing) {
    const auto isOver = [&](double seconds) {
      if (!isStopped)
        tell({.secondsLeft = {}, .what = job.text(), .isCrossover = true});
      return isStopped ||
             (options.limits.budgetSeconds > 0 && monotonicSeconds() - begin + seconds > options.limits.budgetSeconds);
    };
    Result<std::optional<StoredRoute>> measured =
        measureCrossover(job, {worker.measureDuel, model.device, environment.revision, isOver});
    route = measured ? std::move(*measured) : std::nullopt;
    status = !measured ? "failed" : route ? "measured" : "left";
    const Status kept = route ? environment.cache->putRoute(*route) : measured.status();
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
  for (const TuneRow &row : model.rows)
    if (row.json.contains("route"))
      wanted.emplace(row.json["route"].value("family", ""), row.json["route"].value("name", ""));
  for (const auto &[family, name] : wanted)
    if (const std::optional<StoredRoute> route = environment.cache->findRoute(family, model.device, name))
      thresholds.push_back({{"family", family},
                            {"device", model.device},
                            {"name", name},
                            {"never", route->threshold == StoredRoute::kNever},
                            {"threshold", route->threshold},
                            {"measured", route->evidence.size()},
                            {"provenance", route->provenance}});
  return thresholds;
}

TuneOutcome WorkloadRun::report() {
  TuneOutcome outcome{.counts = {}, .seconds = monotonicSeconds() - begin, .isStopped = isStopped, .report = {}};
  std::vector<TuneRow> rows;
  Json devices = Json::array(), kernels = Json::array(), thresholds = Json::array(), crossovers = Json::array();
  for (Model &model : models) {
    Json names = Json::array();
    for (const TuneDevice &worker : model.workers)
      names.push_back(worker.name);
    devices.push_back({{"device", model.device}, {"names", std::move(names)}});
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (model.rows[i].json.is_null())
        model.rows[i] = rowOf(model, i, TuneState::kLeft);
      ++outcome.counts[model.rows[i].state];
    }
    for (Json &threshold : thresholdsOf(model))
      thresholds.push_back(std::move(threshold));
    std::ranges::move(model.rows, std::back_inserter(rows));
    std::ranges::move(model.crossovers, std::back_inserter(crossovers));
  }
  Json workloadsReport = workloadReports(workloads, rows);
  for (TuneRow &row : rows)
    kernels.push_back(std::move(row.json));
  outcome.report = {{"report", "nsa tune"},
                    {"workload", titleOf(workloads)},
                    {"direction", directionOf(workloads)},
                    {"operators", operatorNames(workloads)},
                    {"cache", environment.cache->path()},
                    {"compiler", environment.revision},
                    {"exhaustive", environment.exhaustive},
                    {"budget_seconds", options.limits.budgetSeconds},
                    {"seconds", outcome.seconds},
                    {"interrupted", outcome.isStopped},
                    {"counts", outcome.counts.json()},
                    {"workloads", std::move(workloadsReport)},
                    {"devices", std::move(devices)},
                    {"thresholds", std::move(thresholds)},
                    {"crossovers", std::move(crossovers)},
                    {"kernels", std::move(kernels)}};
  return outcome;
}

} // namespace

Result<TuneEnvironment> TuneEnvironment::of(const EngineOptions &options, std::shared_ptr<KernelCache> cache) {
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const CompilerLibrary> compiler, CompilerLibrary::open(options.compilerPath));
  if (!cache) {
    Logger logger(options.log, *options.logLevel);
    std::vector<std::string> warnings;
    NSA_ASSIGN_OR_RETURN(CacheSettings settings, settingsOf(options, warnings));
    for (const std::string &warning : warnings)
      logger.log(LogLevel::kWarning, "cache", warning);
    cache = std::make_shared<KernelCache>(std::move(settings), std::move(logger));
  }
  return TuneEnvironment{.revision = (compiler)->sourceId(),
                         .templateDir = options.templateDir,
                         .cpuFeatures = options.cpuFeatures,
                         .cache = std::move(cache),
                         .routes = options.routeRules(),
                         .compileThreads = options.compileThreads,
                         .kernelSeconds = options.tuneBudgetSeconds,
                         .exhaustive = options.tuneExhaustive};
}

Result<TuneOutcome> runWorkloads(const std::vector<Workload> &workloads, const TuneEnvironment &environment,
                                 std::vector<TuneDevice> devices, const TuneRunOptions &options) {
  return WorkloadRun(workloads, environment, options).run(std::move(devices));
}

} // namespace nsa
