#include "runtime/engine/engine.h"

#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine/cache_settings.h"
#include "runtime/engine/describe.h"
#include "runtime/engine/plan_parts.h"
#include "runtime/engine/template_folder.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <unistd.h>

namespace nsa {

namespace {

constexpr std::string_view kCudaPrefix = "cuda:";

// The keys of an operator's kernels, quoted.
std::string problemTexts(const Spec &spec, const Maxima &maxima) {
  std::string text;
  for (const Step &step : stepsOf(spec, maxima))
    text += (text.empty() ? "'" : ", '") + Problem::make(step.spec, step.maxima).key() + "'";
  return text;
}

Status checkRequest(const Spec &spec, const Maxima &maxima) {
  NSA_RETURN_IF_ERROR(spec.validate());
  return maxima.validate(spec);
}

} // namespace

void EngineRelease::operator()(Engine *engine) const { engine->release(); }

Result<EnginePointer> Engine::open(EngineOptions options, const EngineOptions::Environment &environment) {
  std::unique_ptr<Engine> engine(new Engine);
  engine->options = std::move(options);
  NSA_RETURN_IF_ERROR(engine->options.resolve(environment));
  engine->logger = Logger(engine->options.log, *engine->options.logLevel);
  NSA_RETURN_IF_ERROR(engine->openDevice());
  return open(std::move(engine));
}

Result<EnginePointer> Engine::openInChild() const {
  if (ownDevice->isGpu()) {
    ErrorInfo info;
    info.code = ErrorCode::kUnavailable;
    info.message = "this process is a fork of the one that opened the engine, and CUDA does not survive a fork";
    info.hint = "create the engine in the child, in a process whose parent has not used CUDA, or start the process "
                "with spawn or exec instead of fork";
    return Status(std::move(info));
  }
  std::unique_ptr<Engine> child(new Engine);
  child->options = options;
  child->logger = logger;
  child->gpuTrouble = gpuTrouble;
  // The parent's kind of device, also where nobody chose: its plans and the child's must agree.
  NSA_RETURN_IF_ERROR(child->openCpu());
  return open(std::move(child));
}

// All but the device, which is there.
Result<EnginePointer> Engine::open(std::unique_ptr<Engine> engine) {
  const EngineOptions &resolved = engine->options;
  std::string choiceDevice = engine->ownDevice->key();
  if (!resolved.templateDir.empty()) {
    // Choices made from a folder of templates hold for exactly that folder's content.
    Result<std::string> digest = digestTemplateFolder(resolved.templateDir);
    if (!digest)
      return digest.status();
    choiceDevice += " templates=" + *digest;
  }
  Result<CacheSettings> cacheSettings = settingsOf(resolved);
  if (!cacheSettings)
    return cacheSettings.status();
  engine->cache = std::make_unique<KernelCache>(std::move(*cacheSettings), engine->logger);
  engine->planner = std::make_unique<Planner>(*engine->ownDevice, std::move(choiceDevice), *engine->cache, resolved,
                                              engine->logger, engine->ownCounters);
  engine->pool.emplace(*engine->ownDevice);
  return EnginePointer(engine.release());
}

Status Engine::openDevice() {
  std::string_view name = options.device;
  if (name.starts_with(kCudaPrefix)) {
    int ordinal = 0;
    std::string_view digits = name.substr(kCudaPrefix.size());
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (error != std::errc() || end != digits.data() + digits.size() || ordinal < 0)
      return Status::invalid("device", options.device, "must be cpu or cuda:N");
    // What is compiled first needs no context. Where nobody chose the device, its lack must be known here.
    Result<std::unique_ptr<Device>> gpu = cuda::CudaDevice::open(ordinal, cuda::CudaDevice::Start::kBeside);
    if (!gpu)
      return gpu.status();
    ownDevice = std::move(*gpu);
    return Status::ok();
  }
  if (!name.empty() && name != "cpu")
    return Status::invalid("device", options.device, "must be cpu or cuda:N");
  if (name.empty()) {
    Result<std::unique_ptr<Device>> gpu = cuda::CudaDevice::open(0);
    if (gpu) {
      ownDevice = std::move(*gpu);
      return Status::ok();
    }
    gpuTrouble = gpu.status().toString();
    // A machine without a GPU is no news; one whose GPU cannot be used is.
    LogLevel level = gpu.status().code() == ErrorCode::kUnavailable ? LogLevel::kInfo : LogLevel::kWarning;
    logger.log(level, "engine", "the CPU serves: " + gpuTrouble);
  }
  return openCpu();
}

Status Engine::openCpu() {
  Result<std::unique_ptr<Device>> cpu = cpu::CpuDevice::open(options.cpuThreads, options.cpuFeatures);
  if (!cpu)
    return cpu.status();
  ownDevice = std::move(*cpu);
  return Status::ok();
}

void Engine::release() {
  if (pool->close())
    delete this;
}

void Engine::takeBack(Plan *plan) {
  // The pool of the parent may be locked for ever; its plans are left behind with it.
  if (isOfThisProcess() && pool->giveBack(plan))
    delete this;
}

const PlanCore *Engine::findInMemory(const PlanKey &key, const Spec &spec, const Maxima &maxima) const {
  const PlanCore *core = plans.find(key);
  return core && core->checkGrids(spec, maxima).isOk() ? core : nullptr;
}

Result<PlanPointer> Engine::hand(const PlanCore &core, PlanSource source, const Spec &spec, const Maxima &maxima) {
  const WorkspaceLayout layout(spec, maxima, core.kernels, ownDevice->isGpu());
  NSA_RETURN_IF_ERROR(layout.check(maxima));
  Result<Plan *> plan = pool->take();
  if (!plan)
    return plan.status();
  (*plan)->engine = this;
  (*plan)->core = &core;
  (*plan)->source = source;
  (*plan)->rules = CallRules(spec, maxima);
  (*plan)->layout = layout;
  return PlanPointer(*plan);
}

Result<PlanPointer> Engine::plan(const Spec &spec, const Maxima &maxima, void *stream) {
  auto failed = [&](Status status) {
    Counters::raise(ownCounters.plansFailed);
    return status;
  };
  if (Status status = checkRequest(spec, maxima); !status.isOk())
    return failed(std::move(status));
  PlanKey key = PlanKey::make(spec, maxima);
  auto give = [&](const PlanCore &core, PlanSource source) -> Result<PlanPointer> {
    Result<PlanPointer> plan = hand(core, source, spec, maxima);
    if (!plan)
      return failed(plan.status());
    if (source == PlanSource::kMemory)
      ownCounters.plansFromMemory.raise();
    return plan;
  };
  if (const PlanCore *core = findInMemory(key, spec, maxima))
    return give(*core, PlanSource::kMemory);

  Result<bool> capturing = ownDevice->isCapturing(stream);
  if (!capturing)
    return failed(capturing.status());
  if (*capturing) {
    ErrorInfo info;
    info.code = ErrorCode::kCapturing;
    info.field = "stream";
    info.value = "capturing";
    info.message = "the stream captures a graph, and the plan for " + problemTexts(spec, maxima) + " is not in memory";
    info.hint = "make the plan once, with the same spec and maxima, before the capture begins";
    return failed(Status(std::move(info)));
  }

  std::lock_guard missLock(missMutexes[key.hash() % missMutexes.size()]);
  if (const PlanCore *core = findInMemory(key, spec, maxima))
    return give(*core, PlanSource::kMemory);
  Result<std::shared_ptr<const PlanCore>> made = make(spec, maxima);
  if (!made)
    return failed(made.status());
  const PlanCore *core = plans.put(key, std::move(*made));
  Counters::raise(core->source == PlanSource::kCompiled ? ownCounters.plansCompiled : ownCounters.plansFromDatabase);
  return give(*core, core->source);
}

Result<std::shared_ptr<const PlanCore>> Engine::make(const Spec &spec, const Maxima &maxima) {
  Result<std::vector<PlanCore::Part>> parts = makeParts(*planner, stepsOf(spec, maxima), options);
  if (!parts)
    return parts.status();
  return std::make_shared<const PlanCore>(std::move(*parts));
}

Result<std::string> Engine::explain(const Spec &spec, const Maxima &maxima) {
  NSA_RETURN_IF_ERROR(checkRequest(spec, maxima));
  const bool inMemory = findInMemory(PlanKey::make(spec, maxima), spec, maxima) != nullptr;
  std::vector<std::string> texts;
  for (const Step &step : stepsOf(spec, maxima)) {
    if (!isTuned(step.spec.op))
      continue; // nothing to choose, so nothing to explain
    Result<std::string> text = planner->explain(step.spec, step.maxima, inMemory);
    if (!text)
      return text;
    texts.push_back(std::move(*text));
  }
  return joinTexts(texts);
}

Result<std::string> Engine::tune(const Spec &spec, const Maxima &maxima) {
  NSA_RETURN_IF_ERROR(checkRequest(spec, maxima));
  std::vector<std::string> reports;
  std::vector<PlanCore::Part> parts;
  for (const Step &step : stepsOf(spec, maxima)) {
    std::string report;
    Result<std::shared_ptr<const KernelCore>> kernel = planner->tune(step.spec, step.maxima, report);
    if (!kernel)
      return kernel.status();
    if (!report.empty())
      reports.push_back(std::move(report));
    parts.push_back({step, std::move(*kernel)});
  }
  const PlanCore *core = plans.put(PlanKey::make(spec, maxima), std::make_shared<const PlanCore>(std::move(parts)));
  Counters::raise(core->source == PlanSource::kCompiled ? ownCounters.plansCompiled : ownCounters.plansFromDatabase);
  return joinTexts(reports);
}

Result<std::string> Engine::tuneKernel(const Spec &spec, const Maxima &maxima, const std::string &problem,
                                       double budgetSeconds) {
  NSA_RETURN_IF_ERROR(checkRequest(spec, maxima));
  if (!std::isfinite(budgetSeconds) || budgetSeconds < 0)
    return Status::invalid("budget_seconds", std::to_string(budgetSeconds),
                           "must be positive and finite, or 0 for the engine's");
  for (const Step &step : stepsOf(spec, maxima)) {
    if (Problem::make(step.spec, step.maxima).key() != problem)
      continue;
    std::string report;
    Result<std::shared_ptr<const KernelCore>> kernel = planner->tune(step.spec, step.maxima, report, budgetSeconds);
    if (!kernel)
      return kernel.status();
    return joinTexts(report.empty() ? std::vector<std::string>() : std::vector{report});
  }
  return Status::invalid("problem", problem, "must be the key of one of the operator's kernels",
                         "they are " + problemTexts(spec, maxima));
}

std::string Engine::describe() const {
  EngineDescription description;
  description.gpu = ownDevice->isGpu();
  description.deviceKey = ownDevice->key();
  description.facts = ownDevice->facts();
  description.gpuTrouble = gpuTrouble;
  description.cachePath = cache->path();
  description.cacheTrouble = cache->trouble();
  description.compilerPath = CompilerLibrary::resolvePath(options.compilerPath);
  // Looked at, not opened: describing an engine must not pull LLVM into the process.
  if (access(description.compilerPath.c_str(), R_OK) != 0)
    description.compilerTrouble = "not found; kernels that no cache holds cannot be made";
  description.policy = *options.missPolicy;
  return describeEngine(description);
}

} // namespace nsa
