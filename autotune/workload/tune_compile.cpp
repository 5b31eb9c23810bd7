#include "autotune/workload/tune_compile.h"

#include "autotune/workload/stored_choices.h"
#include "autotune/workload/tune_record.h"
#include "runtime/engine/choices/kernel_match.h"
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/compile/default_kernel.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/engine/options/compile_request.h"
#include "runtime/process/run_at_once.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace nsa {
namespace {

using Json = nlohmann::ordered_json;

// The compiler's best guess that compiles and that an engine would take, as the engine makes it.
Result<CompiledKernel> compileDefault(const CompilerLibrary &compiler, const Problem &problem, CompileRequest request) {
  NSA_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, compiler.list(request));
  std::optional<CompiledKernel> made;
  const auto accept = [&](const CompileRequest &by, CompiledKernel &kernel) -> Status {
    NSA_RETURN_IF_ERROR(checkServes(kernel.manifest, ProblemKey::of(problem), by.target));
    made = std::move(kernel);
    return Status::ok();
  };
  NSA_RETURN_IF_ERROR(makeDefaultKernel(compiler, std::move(request), candidates, accept));
  return std::move(*made);
}

class Compilation {
public:
  Compilation(const std::vector<Workload> &workloads, const EngineOptions &engine, const TuneCompileOptions &options)
      : workloads(workloads), engine(engine), options(options) {}

  Result<Json> run() {
    RouteRules ofStep = engine.routeRules();
    ofStep.mayStep = std::ranges::find(options.targets, kStepTarget) != options.targets.end();
    NSA_ASSIGN_OR_RETURN(jobs, expand(workloads, engine.routeRules(), [&](const Spec &spec, const Maxima &maxima) {
                           return routingOf(spec, maxima, ofStep).steps();
                         }));
    NSA_RETURN_IF_ERROR(open());
    for (const std::string &target : options.targets)
      NSA_RETURN_IF_ERROR(addFamilies(target));
    NSA_RETURN_IF_ERROR(work());
    return report();
  }

private:
  // All problems that one kernel serves.
  struct Family {
    std::string target, device;
    std::vector<size_t> jobs;
  };

  Status open();
  Status addFamilies(const std::string &target);
  Status work();
  void make(const Family &family);
  Status store(const Family &family, const CompiledKernel &kernel);
  void add(const Family &family, size_t job, const std::string &status, const CompiledKernel *kernel,
           const std::string &error);
  Json report();

  const std::vector<Workload> &workloads;
  const EngineOptions &engine;
  const TuneCompileOptions &options;
  std::vector<TuneJob> jobs;
  std::shared_ptr<const CompilerLibrary> compiler;
  std::unique_ptr<KernelStore> kernelStore;
  std::vector<Family> families;
  std::mutex mutex; // of the records
  std::vector<Json> records;
  size_t done = 0;
  std::atomic<bool> isStopped = false;
};

Status Compilation::open() {
  NSA_ASSIGN_OR_RETURN(compiler, CompilerLibrary::open(engine.compilerPath));
  // Kernels that are made here are of use only when they are stored.
  std::string warning;
  NSA_ASSIGN_OR_RETURN(kernelStore, KernelStore::open({.path = engine.cachePath}, warning));
  return warning.empty() ? Status::ok() : Status::error(ErrorCode::kIoError, warning);
}

Status Compilation::addFamilies(const std::string &target) {
  NSA_ASSIGN_OR_RETURN(std::string device, targetDevice(target, engine.templateDir, engine.cpuFeatures));
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (operatorName(jobs[i].kernel.op) == kStepVariant && target != kStepTarget && engine.forceVariant != kStepVariant)
      continue; // on this target no rule takes decode_step
    const auto [found, isNew] = known.emplace(jobs[i].family, families.size());
    if (isNew)
      families.push_back({target, device, {}});
    families[found->second].jobs.push_back(i);
  }
  return Status::ok();
}

Status Compilation::work() {
  const auto threads = static_cast<size_t>(std::max(engine.compileThreads, 1));
  return runAtOnce(families.size(), threads, {"nsa-compile", "to compile a kernel"}, [&](size_t family) {
    if (!isStopped)
      make(families[family]);
    return Status::ok();
  });
}

void Compilation::make(const Family &family) {
  // A default is never measured, so it stands for its problem whether it is the job's choice or a tuned one's.
  std::vector<size_t> missing;
  for (size_t index : family.jobs) {
    Result<std::optional<StoredChoice>> choice = kernelStore->findChoice(jobs[index].problem, family.device);
    const bool current = choice && *choice && revisionOf((*choice)->provenance) == compiler->sourceId();
    Result<std::optional<StoredKernel>> kernel =
        current ? kernelStore->findKernel((*choice)->content) : Result<std::optional<StoredKernel>>(std::nullopt);
    if (!options.again && kernel && *kernel)
      add(family, index, "stored", nullptr, "");
    else
      missing.push_back(index);
  }
  if (missing.empty())
    return;
  const TuneJob &job = jobs[missing.front()];
  const Problem problem = Problem::make(job.kernel, job.maxima);
  Result<CompiledKernel> kernel =
      compileDefault(*compiler, problem, requestOf(ProblemKey::of(problem), engine, family.target));
  const Status status = kernel ? store({family.target, family.device, missing}, *kernel) : kernel.status();
  const std::string error = status.isOk() ? "" : status.toString();
  for (size_t index : missing)
    add(family, index, error.empty() ? "made" : "failed", kernel ? &*kernel : nullptr, error);
}

Status Compilation::store(const Family &family, const CompiledKernel &kernel) {
  const StoredKernel stored{kernel.content, kernel.manifestText, kernel.binary};
  for (size_t index : family.jobs) {
    StoredChoice choice;
    choice.problem = jobs[index].problem;
    choice.device = withTemplates(family.device, kernel.templates);
    choice.content = kernel.content;
    choice.provenance = provenanceOf(compiler->sourceId());
    NSA_RETURN_IF_ERROR(kernelStore->put(stored, &choice));
  }
  return Status::ok();
}

void Compilation::add(const Family &family, size_t index, const std::string &status, const CompiledKernel *kernel,
                      const std::string &error) {
  const TuneJob &job = jobs[index];
  Json record = {{"problem", job.problem},
                 {"device", family.device},
                 {"target", family.target},
                 {"family", job.family},
                 {"operator", operatorName(job.kernel.op)},
                 {"heads", job.head},
                 {"status", status}};
  if (kernel) {
    record["template"] = kernel->manifest.templateName;
    record["config"] = formatValues(kernel->manifest.config);
    record["content"] = kernel->content;
    record["bytes"] = kernel->binary.size();
    record["milliseconds"] = {{"render", kernel->renderMs}, {"compile", kernel->compileMs}};
  }
  if (!error.empty())
    record["error"] = error;
  const std::lock_guard lock(mutex);
  ++done;
  if (options.tell && status != "stored" &&
      !options.tell({.done = done,
                     .total = jobs.size() * options.targets.size(),
                     .secondsLeft = {},
                     .what = job.text(),
                     .record = &record}))
    isStopped = true;
  records.push_back(std::move(record));
}

Json Compilation::report() {
  std::ranges::sort(records, {}, [](const Json &record) {
    return std::pair(record["target"].get<std::string>(), record["problem"].get<std::string>());
  });
  Json counts = {{"kernels", jobs.size() * options.targets.size()}, {"made", 0}, {"stored", 0}, {"failed", 0}};
  for (const Json &record : records) {
    Json &count = counts[record["status"].get<std::string>()];
    count = count.get<int>() + 1;
  }
  counts["left"] = jobs.size() * options.targets.size() - records.size();
  return {
      {"report", "nsa tune --compile-only"},   {"workload", titleOf(workloads)}, {"direction", directionOf(workloads)},
      {"operators", operatorNames(workloads)}, {"cache", kernelStore->path()},   {"compiler", compiler->sourceId()},
      {"interrupted", isStopped.load()},       {"counts", std::move(counts)},    {"kernels", std::move(records)}};
}

} // namespace

Result<nlohmann::ordered_json> compileWorkloads(const std::vector<Workload> &workloads, const EngineOptions &engine,
                                                const TuneCompileOptions &options) {
  return Compilation(workloads, engine, options).run();
}

} // namespace nsa
