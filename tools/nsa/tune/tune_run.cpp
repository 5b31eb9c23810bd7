#include "tools/nsa/tune/tune_run.h"

#include "bench/measure/bench_case.h"
#include "bench/measure/fma_peak.h"
#include "bench/measure/machine_facts.h"
#include "bench/measure/stream_bandwidth.h"
#include "runtime/engine/choices/kernel_cache.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/options/cache_settings.h"
#include "runtime/engine/options/options.h"
#include "runtime/process/run_at_once.h"
#include "tools/nsa/command/command.h"
#include "tools/nsa/command/interruption.h"
#include "tools/nsa/tune/tune_crossover.h"
#include "tools/nsa/tune/tune_queue.h"
#include "tools/nsa/tune/tune_record.h"
#include "tools/support/progress.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A device that works, and its engine.
struct Worker {
  std::string name; // "cuda:1"
  EngineHandle engine;
  nlohmann::json facts;
};

// Devices of one model have one table, so they share its jobs.
struct Model {
  std::string device; // under which choices are stored
  bool isGpu = false;
  std::vector<Worker> workers;
  std::vector<std::optional<StoredChoice>> stored; // by job: what needs nothing more
  std::vector<Json> records;                       // by job; null: no worker reached it
  std::map<std::string, size_t> made;              // by family of kernels without choices: one that is stored
  std::unique_ptr<TuneQueue> queue;
  Json crossovers = Json::array();
};

class WorkloadRun {
public:
  WorkloadRun(const std::vector<Workload> &workloads, const TuneRunOptions &options)
      : workloads(workloads), options(options) {}

  Result<Json> run() {
    Result<TuneEnvironment> resolved = tuneEnvironment(options.engine);
    if (!resolved)
      return resolved.status();
    environment = std::move(*resolved);
    NSA_RETURN_IF_ERROR(openDevices());
    NSA_RETURN_IF_ERROR(findJobs());
    findStored();
    NSA_RETURN_IF_ERROR(checkKept());
    begin = now();
    const Interruption interruption;
    NSA_RETURN_IF_ERROR(work());
    for (Model &model : models)
      for (const CrossoverJob &job : crossoverJobs(workloads))
        model.crossovers.push_back(crossover(model, job));
    return report();
  }

private:
  Status openDevices();
  Status findJobs();
  void findStored();
  Status work();
  void workFor(Model &model, Worker &worker);
  bool copyMade(Model &model, size_t index);
  void finish(Model &model, const Worker &worker, size_t index, const Result<nlohmann::json> &report, double seconds);
  Status checkKept() const;
  void print(const std::string &line);
  void show();
  std::string lineOf(const TuneJob &job, const Json &record) const;
  Result<Json> report();
  Json crossover(Model &model, const CrossoverJob &job);
  Json roofsOf(const Model &model) const;
  Json thresholdsOf(const Model &model);

  const std::vector<Workload> &workloads;
  const TuneRunOptions &options;
  std::vector<TuneJob> jobs;
  TuneEnvironment environment;
  std::vector<Model> models;
  double begin = 0;
  std::mutex mutex; // of what is shown, and of the records
  std::unique_ptr<Progress> progress;
  std::optional<StoredChoices> stored;
};

Status WorkloadRun::openDevices() {
  for (const std::string &device : options.devices) {
    EngineSettings settings = options.engine;
    settings.device = device;
    settings.missPolicy = NSA_MISS_DEFAULT; // asked for, tuning is done whatever NSA_MISS says of plans
    settings.compileThreads = std::max(1, environment.compileThreads / static_cast<int>(options.devices.size()));
    Result<EngineHandle> engine = createEngine(settings);
    if (!engine)
      return engine.status();
    Result<nlohmann::json> facts = bench::machineFacts(engine->get());
    Result<std::string> name = deviceName(engine->get());
    if (!facts || !name)
      return facts ? name.status() : facts.status();
    const nlohmann::json &description = (*facts)["device"];
    const std::string key = description.value("choice_key", "");
    auto model = std::ranges::find_if(models, [&](const Model &each) { return each.device == key; });
    if (model == models.end()) {
      models.emplace_back();
      model = models.end() - 1;
      model->device = key;
      model->isGpu = description.value("kind", "") == "gpu";
    }
    for (const Model &each : models)
      if (std::ranges::any_of(each.workers, [&](const Worker &worker) { return worker.name == *name; }))
        return Status::invalid("--device", *name, "must stand there once");
    model->workers.push_back({*name, std::move(*engine), std::move(*facts)});
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
      model.records[i] = jobRecord(jobs[i], model.device, model.isGpu);
      model.records[i]["status"] = "stored";
      if (!jobs[i].isTuned)
        model.made.emplace(jobs[i].family, i);
      addStored(model.records[i], *model.stored[i]);
    }
    model.queue = std::make_unique<TuneQueue>(jobs, std::move(wanted),
                                              TuneQueue::Limits{.totalSeconds = options.budgetSeconds,
                                                                .kernelSeconds = options.engine.tuneBudgetSeconds,
                                                                .workers = static_cast<int>(model.workers.size()),
                                                                .now = now});
  }
}

Status WorkloadRun::work() {
  if (options.showsProgress)
    progress = std::make_unique<Progress>(STDERR_FILENO, 0);
  std::vector<std::pair<Model *, Worker *>> all;
  for (Model &model : models)
    for (Worker &worker : model.workers)
      all.emplace_back(&model, &worker);
  Status status = runAtOnce(all.size(), all.size(), {"nsa-measure", "to tune"}, [&](size_t i) {
    workFor(*all[i].first, *all[i].second);
    return Status::ok();
  });
  progress.reset();
  return status;
}

void WorkloadRun::workFor(Model &model, Worker &worker) {
  std::string family;
  while (!Interruption::wanted()) {
    const std::optional<TuneQueue::Ticket> ticket = model.queue->take(family);
    if (!ticket)
      return;
    const TuneJob &job = jobs[ticket->job];
    family = job.family;
    show();
    const double start = now();
    Result<nlohmann::json> report = nlohmann::json::object();
    if (!copyMade(model, ticket->job))
      report = tuneKernel(worker.engine.get(), job.spec, job.maxima, job.problem, ticket->seconds);
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

void WorkloadRun::finish(Model &model, const Worker &worker, size_t index, const Result<nlohmann::json> &report,
                         double seconds) {
  const TuneJob &job = jobs[index];
  Json record = jobRecord(job, model.device, model.isGpu);
  record["on"] = worker.name;
  record["seconds"] = seconds;
  std::string error;
  if (!report) {
    error = report.status().toString();
  } else {
    addReport(record, *report);
    error = report->value("store_trouble", "");
  }
  const bool elsewhere = report && report->value("tuned_elsewhere", false);
  const bool measured = report && report->value("tuned", true);
  record["status"] = !error.empty() ? "failed"
                     : !job.isTuned ? "made"
                     : elsewhere    ? "tuned elsewhere"
                     : measured     ? "tuned"
                                    : "left"; // its share of the budget was too little
  if (!error.empty())
    record["error"] = error;
  {
    const std::lock_guard lock(mutex);
    print(lineOf(job, record));
    if (record["status"] == "made")
      model.made.emplace(job.family, index);
    model.records[index] = std::move(record);
  }
  show();
}

// Said before the budget is spent, not with each kernel.
Status WorkloadRun::checkKept() const {
  const bool makes = std::ranges::any_of(models, [](const Model &model) { return model.queue->state().total > 0; });
  return makes ? KernelCache({.path = environment.cache.path}, Logger()).checkKept() : Status::ok();
}

// Erases the line that shows the progress first, because both usually stand on the same terminal. The caller holds
// `mutex`, or no other thread runs.
void WorkloadRun::print(const std::string &line) {
  if (!options.print)
    return;
  if (progress)
    progress->step(""); // show() writes the next one
  options.print(line);
}

// One line over all models: how far, what is being done, how long it will take.
void WorkloadRun::show() {
  if (!progress)
    return;
  TuneQueue::State sum;
  bool known = true;
  double longest = 0;
  for (const Model &model : models) {
    const TuneQueue::State state = model.queue->state();
    sum.done += state.done;
    sum.total += state.total;
    sum.working += state.working;
    known = known && (state.secondsLeft || state.total == 0);
    longest = std::max(longest, state.secondsLeft.value_or(0));
  }
  const std::lock_guard lock(mutex);
  progress->step("tuning " + titleOf(workloads) + ": " + std::to_string(sum.done) + " of " + std::to_string(sum.total) +
                     " kernels",
                 known ? std::optional(longest) : std::nullopt);
}

std::string WorkloadRun::lineOf(const TuneJob &job, const Json &record) const {
  size_t done = 0, total = 0;
  for (const Model &model : models) {
    done += model.queue->state().done;
    total += model.queue->state().total;
  }
  std::string line = "[" + std::to_string(done) + "/" + std::to_string(total) + "] " + job.text() + ": ";
  if (record.contains("error"))
    return line + "failed: " + record["error"].get<std::string>();
  if (record.value("status", "") == "left")
    return line + "left: the budget ended before anything was measured";
  if (!record.contains("winner"))
    return line + "made";
  const Json &winner = record["winner"];
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.3f", winner.value("ratio_to_default", 0.0));
  const std::string cut = record.value("cut", "");
  line += millisecondsText(winner.value("milliseconds", 0.0)) + (cut.empty() ? "" : " (" + cut + ")") + ", " + ratio +
          " of the default, " + winner.value("template", "") + " " + winner.value("config", "");
  if (record.value("tie", false))
    line += " (a tie)";
  return line;
}

// What is stored of the crossover with dense attention, or measured by one device of the model once all kernels are
// there: an earlier answer does not hold for kernels that are new.
Json WorkloadRun::crossover(Model &model, const CrossoverJob &job) {
  const auto isNew = [&](size_t i) {
    return model.records[i].is_object() && model.records[i].value("status", "") == "tuned" &&
           jobs[i].spec.op == Operator::kNsa && crossoverFamily(jobs[i].spec, job.batch) == job.family;
  };
  bool isStale = options.again;
  for (size_t i = 0; i < jobs.size(); ++i)
    isStale = isStale || isNew(i);
  std::optional<StoredRoute> route = stored->routeOf(job.family, model.device, kCrossoverRoute);
  std::string status = "stored", error;
  if (isStale || !route || !answers(*route, job, environment.revision)) {
    const auto isOver = [&](double seconds) {
      return Interruption::wanted() || (options.budgetSeconds > 0 && now() - begin + seconds > options.budgetSeconds);
    };
    Progress line;
    if (options.showsProgress)
      line.step("crossover with dense attention: " + job.text());
    const Worker &worker = model.workers.front();
    Result<std::optional<StoredRoute>> measured =
        measureCrossover(job, {worker.engine.get(), worker.name, model.device, environment.revision, isOver});
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
    print("crossover with dense attention, " + job.text() + ": " + record.value("text", ""));
  return record;
}

Json WorkloadRun::roofsOf(const Model &model) const {
  Json roofs = Json::object();
  if (!model.isGpu && !options.measuresRoofs)
    return roofs;
  if (!model.isGpu) {
    const auto threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
    const double teraflops = bench::measureFmaPeak(threads, 3).gflops * 1e-3;
    const double terabytes = bench::StreamBandwidth(threads).gigabytesPerSecond() * 1e-3;
    for (const TuneJob &job : jobs)
      roofs[std::string(dtypeName(job.spec.dtype))] = {{"tflops", teraflops}, {"terabytes_per_second", terabytes}};
    return roofs;
  }
  const std::string name = model.workers.front().facts["device"].value("name", "");
  for (const TuneJob &job : jobs)
    if (const std::optional<bench::Roof> roof = bench::roofOf(name, job.spec.dtype))
      roofs[std::string(dtypeName(job.spec.dtype))] = {{"tflops", roof->tflops},
                                                       {"terabytes_per_second", roof->terabytesPerSecond}};
  return roofs;
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

Result<Json> WorkloadRun::report() {
  const double seconds = now() - begin;
  const nlohmann::json &machine = models.front().workers.front().facts;
  Json report = {{"report", "nsa tune"},
                 {"workload", titleOf(workloads)},
                 {"operators", operatorNames(workloads)},
                 {"date", machine["date"]},
                 {"version", machine["version"]},
                 {"source", machine["source"]},
                 {"cache", environment.cache.path},
                 {"compiler", environment.revision},
                 {"processor", machine["processor"]},
                 {"cores", machine["cores"]},
                 {"exhaustive", environment.exhaustive},
                 {"budget_seconds", options.budgetSeconds},
                 {"seconds", seconds},
                 {"interrupted", Interruption::wanted()}};
  Json counts = emptyCounts();
  Json devices = Json::array(), kernels = Json::array(), thresholds = Json::array(), crossovers = Json::array();
  for (Model &model : models) {
    Json names = Json::array();
    for (const Worker &worker : model.workers)
      names.push_back(worker.name);
    devices.push_back({{"device", model.device},
                       {"names", std::move(names)},
                       {"facts", model.workers.front().facts["device"]},
                       {"roofs", roofsOf(model)}});
    for (size_t i = 0; i < jobs.size(); ++i) {
      Json &record = model.records[i];
      if (record.is_null()) {
        record = jobRecord(jobs[i], model.device, model.isGpu);
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

Result<TuneEnvironment> tuneEnvironment(const EngineSettings &settings) {
  nsa::EngineOptions resolved;
  resolved.cachePath = settings.cachePath;
  resolved.cachePacks = settings.cachePacks;
  resolved.cacheKeys = settings.cacheKeys;
  resolved.requireSignature = settings.requireSignature;
  resolved.compilerPath = settings.compilerPath;
  resolved.templateDir = settings.templateDir;
  resolved.cpuFeatures = settings.cpuFeatures;
  resolved.compileThreads = settings.compileThreads;
  resolved.tuneBudgetSeconds = settings.tuneBudgetSeconds;
  resolved.tuneExhaustive = settings.tuneExhaustive;
  NSA_RETURN_IF_ERROR(resolved.resolve(nsa::EngineOptions::processEnvironment()));
  Result<std::shared_ptr<const CompilerLibrary>> compiler = CompilerLibrary::open(resolved.compilerPath);
  if (!compiler)
    return compiler.status();
  Logger logger(resolved.log, *resolved.logLevel);
  std::vector<std::string> warnings;
  Result<CacheSettings> cache = settingsOf(resolved, warnings);
  if (!cache)
    return cache.status();
  for (const std::string &warning : warnings)
    logger.log(LogLevel::kWarning, "cache", warning);
  return TuneEnvironment{.revision = (*compiler)->sourceId(),
                         .templateDir = resolved.templateDir,
                         .cpuFeatures = resolved.cpuFeatures,
                         .cache = std::move(*cache),
                         .logger = std::move(logger),
                         .compileThreads = resolved.compileThreads,
                         .kernelSeconds = resolved.tuneBudgetSeconds,
                         .exhaustive = resolved.tuneExhaustive};
}

Result<nlohmann::ordered_json> runWorkloads(const std::vector<Workload> &workloads, const TuneRunOptions &options) {
  return WorkloadRun(workloads, options).run();
}

} // namespace nsa::tools
