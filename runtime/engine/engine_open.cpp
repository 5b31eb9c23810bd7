// How an engine comes to be: its options, log, device, cache, record, pinned table and background tuner.
#include "runtime/base/device_name.h"
#include "runtime/base/text.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/options/cache_settings.h"
#include "runtime/engine/options/option_paths.h"
#include "runtime/engine/report/profiler_range.h"
#include "runtime/engine/report/stopwatch.h"
#include "runtime/process/log_limit.h"

#include <algorithm>
#include <iterator>

namespace nsa {

namespace {

// A plan ignores a name that none of its kernels has, so a misspelt name would have no effect.
Status checkForcedVariant(const EngineOptions &options) {
  if (options.forceVariant.empty())
    return Status::ok();
  std::vector<std::string> names(std::begin(kVariants), std::end(kVariants));
  if (!options.templateDir.empty()) {
    NSA_ASSIGN_OR_RETURN(names, variantsOf(options.templateDir));
  }
  names.insert(names.end(), {std::string(kStepVariant), std::string(kQueriesVariant), std::string(kSlotsVariant)});
  if (std::ranges::find(names, options.forceVariant) != names.end())
    return Status::ok();
  return Status::invalid(options.sourceOfVariant(), "'" + options.forceVariant + "'",
                         "must be one of " + joined(names, ", "),
                         options.templateDir.empty() ? "" : "name a template of " + options.templateDir);
}

} // namespace

Result<EnginePointer> Engine::open(EngineOptions options, const EngineOptions::Environment &environment) {
  std::unique_ptr<Engine> engine(new Engine);
  engine->options = std::move(options);
  NSA_RETURN_IF_ERROR(engine->options.resolve(environment));
  NSA_RETURN_IF_ERROR(checkPaths(engine->options));
  NSA_RETURN_IF_ERROR(checkForcedVariant(engine->options));
  engine->openLog();
  ProfilerRange::attach(engine->options.profilerPath);
  NSA_RETURN_IF_ERROR(engine->openDevice());
  return open(std::move(engine));
}

Result<EnginePointer> Engine::openInChild() const {
  if (ownDevice->isGpu()) {
    return Status(ErrorInfo{
        .code = ErrorCode::kUnavailable,
        .message = "this process is a fork of the one that opened the engine, and CUDA does not survive a fork",
        .hint = "create the engine in the child, in a process whose parent has not used CUDA, or start the process "
                "with spawn or exec instead of fork"});
  }
  std::unique_ptr<Engine> child(new Engine);
  child->options = options;
  child->openLog();
  child->gpuTrouble = gpuTrouble;
  // The child takes the parent's kind of device even where the caller did not choose one, because plans of both must
  // agree.
  NSA_RETURN_IF_ERROR(child->openCpu());
  return open(std::move(child));
}

// All but the device, which is there.
Result<EnginePointer> Engine::open(std::unique_ptr<Engine> engine) {
  const EngineOptions &resolved = engine->options;
  NSA_ASSIGN_OR_RETURN(std::string choiceDevice, choiceDeviceOf(engine->ownDevice->key(), resolved.templateDir));
  std::vector<std::string> warnings;
  NSA_ASSIGN_OR_RETURN(CacheSettings cacheSettings, settingsOf(resolved, warnings));
  for (const std::string &warning : warnings)
    engine->logger.log(LogLevel::kWarning, "cache", warning);
  if (!resolved.recordPath.empty()) {
    NSA_ASSIGN_OR_RETURN(engine->record,
                         PlanRecord::open(resolved.sourceOf(&EngineOptions::recordPath), resolved.recordPath));
  }
  if (!resolved.pinPath.empty()) {
    NSA_ASSIGN_OR_RETURN(
        std::unique_ptr<PinnedTable> pinned,
        PinnedTable::open(resolved.sourceOf(&EngineOptions::pinPath), resolved.pinPath, cacheSettings.signatures));
    if (const std::string warning = pinned->warning(); !warning.empty())
      engine->logger.log(LogLevel::kWarning, "cache", warning);
    engine->pin = std::move(pinned);
  }
  engine->cache = std::make_unique<KernelCache>(std::move(cacheSettings), engine->logger);
  if (!resolved.forceBranch.empty() || resolved.uniformGate) {
    engine->gateOverride.emplace(*engine->ownDevice, resolved.forceBranch);
    engine->logger.log(LogLevel::kWarning, "engine",
                       "for debugging, whatever the gates: " + engine->gateOverride->text());
  }
  ChoiceSource &choices = engine->pin ? static_cast<ChoiceSource &>(*engine->pin) : *engine->cache;
  engine->planner = std::make_unique<Planner>(*engine->ownDevice, std::move(choiceDevice), *engine->cache, choices,
                                              resolved, engine->logger, engine->ownCounters);
  engine->pool.emplace(*engine->ownDevice);
  if (*resolved.missPolicy == MissPolicy::kBackground) {
    Engine *self = engine.get();
    engine->background.emplace(
        [self] {
          self->ownDevice->ignoreCaptures();
          self->planner->openCompiler();
        },
        engine->ownCounters, engine->logger);
  }
  return EnginePointer(engine.release());
}

void Engine::openLog() {
  logger = Logger(limitLog(options.log, {.lines = options.logLimit}, monotonicSeconds, ownCounters.logDropped),
                  *options.logLevel);
}

Status Engine::openDevice() {
  if (!options.device.empty()) {
    NSA_ASSIGN_OR_RETURN(const std::optional<int> ordinal, gpuOrdinal(options.device));
    if (!ordinal)
      return openCpu();
    // The first compilations need no context, so a thread makes the context beside them. A device that the caller did
    // not choose is opened at once below, because an engine without a usable GPU must take the CPU then.
    NSA_ASSIGN_OR_RETURN(ownDevice, cuda::CudaDevice::open(*ordinal, cuda::CudaDevice::Start::kBeside));
    return Status::ok();
  }
  Result<std::unique_ptr<Device>> gpu = cuda::CudaDevice::open(0);
  if (gpu) {
    ownDevice = std::move(*gpu);
    return Status::ok();
  }
  gpuTrouble = gpu.status().toString();
  if (!options.fallbacks->allows(FallbackStep::kCpu)) {
    ErrorInfo info = gpu.status().error();
    info.message = "no GPU serves, and the fallback to the CPU is not allowed: " + gpuTrouble;
    info.hint = "name a device, or allow the step cpu in `fallbacks` (NSA_FALLBACKS)";
    return Status(std::move(info));
  }
  ownCounters.countFallback(FallbackStep::kCpu);
  // A machine without a GPU is no news; one whose GPU cannot be used is.
  LogLevel level = gpu.status().code() == ErrorCode::kUnavailable ? LogLevel::kInfo : LogLevel::kWarning;
  logger.log(level, "engine", "the CPU serves: " + gpuTrouble);
  return openCpu();
}

Status Engine::openCpu() {
  NSA_ASSIGN_OR_RETURN(ownDevice, cpu::CpuDevice::open(options.cpuThreads, options.cpuFeatures));
  return Status::ok();
}

} // namespace nsa
