#include "runtime/engine/engine.h"

#include "runtime/base/text.h"
#include "runtime/engine/graph/comparison.h"
#include "runtime/engine/report/describe.h"
#include "runtime/engine/report/miss_report.h"
#include "runtime/engine/report/profiler_range.h"
#include "runtime/engine/tune/operator_trial.h"

#include <algorithm>
#include <unistd.h>

namespace nsa {

namespace {

// The keys of an operator's kernels, quoted.
std::string problemTexts(const Spec &spec, const Maxima &maxima) {
  return joined(stepsOf(spec, maxima), ", ",
                [](const Step &step) { return "'" + Problem::make(step.spec, step.maxima).key() + "'"; });
}

// Returns whether an error says that a kernel cannot be had, while the device and the files are in order.
bool isOfKernel(ErrorCode code) {
  return code != ErrorCode::kDeviceError && code != ErrorCode::kOutOfMemory && code != ErrorCode::kIoError &&
         code != ErrorCode::kInternal;
}

bool wantsTuning(const PlanCore::Part &part) { return part.kernel->wantsTuning(isTuned(part.step.spec)); }

Status checkRequest(const Spec &spec, const Maxima &maxima) {
  NSA_RETURN_IF_ERROR(spec.validate());
  return maxima.validate(spec);
}

} // namespace

void EngineRelease::operator()(Engine *engine) const { engine->release(); }

void Engine::release() {
  if (background)
    background->stop(); // no caller can plan again, though plans may be held
  if (record)
    if (const Status status = record->flush(); !status.isOk())
      logger.log(LogLevel::kWarning, "record", status.error().message);
  if (background && background->isOwnThread()) {
    logger.log(LogLevel::kError, "engine",
               "the engine was destroyed in its own callback for better plans, which is forbidden: its memory is not "
               "given back");
    return;
  }
  if (pool->close())
    delete this;
}

void Engine::takeBack(Plan *plan) {
  // The pool of the parent may be locked for ever; its plans are left behind with it.
  if (isOfThisProcess() && pool->giveBack(plan))
    delete this;
}

bool Engine::changes(const Spec &spec, const Maxima &maxima) const {
  return overridesGates(spec) || forcesStep(spec, maxima, options.forceVariant);
}

PlanKey Engine::keyOf(const Spec &spec, const Maxima &maxima) const {
  if (spec.decodeStep || !planner->mayStep() || !stepServes(spec, maxima))
    return PlanKey::make(spec, maxima);
  Spec keyed = spec;
  keyed.decodeStep = true;
  return PlanKey::make(keyed, maxima);
}

Spec Engine::changedSpec(Spec spec, const Maxima &maxima) const {
  if (overridesGates(spec))
    spec.gate = Gate::kValue; // gates that the engine gives are the factors themselves
  spec.decodeStep = forcesStep(spec, maxima, options.forceVariant);
  return spec;
}

const PlanCore *Engine::findInMemory(const PlanKey &key, const Spec &spec, const Maxima &maxima) const {
  const PlanCore *core = plans.find(key);
  return core && core->checkGrids(spec, maxima).isOk() ? core : nullptr;
}

Result<PlanPointer> Engine::hand(const PlanCore &core, PlanSource source, const Spec &spec, const Maxima &maxima) {
  Spec routed = spec;
  routed.keySplits = core.keySplits;
  routed.dqSlots = core.dqSlots;
  routed.decodeStep = core.decodeStep;
  ViewSlots gates;
  if (overridesGates(spec)) {
    NSA_ASSIGN_OR_RETURN(gates, gateOverride->gates(spec.dtype));
  }
  NSA_ASSIGN_OR_RETURN(Plan * taken, pool->take());
  PlanPointer plan(taken);
  plan->engine = this;
  plan->core = &core;
  plan->source = source;
  plan->rules = CallRules(routed, maxima);
  plan->gates = gates;
  plan->layout.assign(routed, maxima, core.scratchBytes, ownDevice->isGpu());
  NSA_RETURN_IF_ERROR(plan->layout.check(maxima));
  return plan;
}

Result<PlanPointer> Engine::plan(const Spec &asked, const Maxima &maxima, void *stream) {
  Spec changed;
  const Spec &spec = changes(asked, maxima) ? (changed = changedSpec(asked, maxima)) : asked;
  auto failed = [&](Status status) {
    Counters::raise(ownCounters.plansFailed);
    return status;
  };
  if (Status status = checkRequest(asked, maxima); !status.isOk())
    return failed(std::move(status));
  if (overridesGates(asked))
    if (Status status = gateOverride->check(asked); !status.isOk())
      return failed(std::move(status));
  PlanKey key = keyOf(spec, maxima);
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

  for (;;) {
    bool isMaker = false;
    PlanSource source = PlanSource::kMemory;
    const Result<const PlanCore *> made = misses.once(key, maxima, [&]() -> Result<const PlanCore *> {
      isMaker = true;
      // Another thread may have made the plan after this thread looked for it.
      if (const PlanCore *core = findInMemory(key, spec, maxima))
        return core;
      Result<const PlanCore *> core = makeMissing(key, asked, spec, maxima);
      if (core)
        source = (*core)->source;
      return core;
    });
    if (!made)
      return failed(withHint(made.status(), planTuning(spec, maxima)));
    // The plan of another thread may have been made for smaller maxima of the same buckets.
    if (isMaker || (*made)->checkGrids(spec, maxima).isOk())
      return give(**made, source);
  }
}

Result<const PlanCore *> Engine::makeMissing(const PlanKey &key, const Spec &asked, const Spec &spec,
                                             const Maxima &maxima) {
  Result<std::shared_ptr<const PlanCore>> made = make(spec, maxima);
  keep(spec, maxima, made.status().code());
  if (!made)
    return made.status();
  const PlanCore *core = plans.put(key, std::move(*made));
  if (background && std::any_of(core->parts.begin(), core->parts.end(), wantsTuning))
    background->add(
        {.key = problemTexts(spec, maxima),
         .tune = [this, key](const BackgroundTuner::StopSignal &stop,
                             bool &better) { return tuneMeanwhile(key, stop, better); },
         .tell = options.tuned ? [this, asked, maxima] { options.tuned(asked, maxima); } : std::function<void()>()});
  Counters::raise(core->source == PlanSource::kCompiled ? ownCounters.plansCompiled : ownCounters.plansFromDatabase);
  return core;
}

Result<PlanPointer> Engine::planThatCompares(const Spec &spec, const Maxima &maxima, void *stream) {
  Result<PlanPointer> made = plan(spec, maxima, stream); // which counts its own failures
  if (!made)
    return made;
  if (Status status = addComparison(**made, maxima, stream); !status.isOk()) {
    Counters::raise(ownCounters.plansFailed);
    return status;
  }
  return made;
}

Status Engine::addComparison(Plan &comparing, const Maxima &maxima, void *stream) {
  NSA_RETURN_IF_ERROR(comparing.checkNotCapturing(stream, "a plan that compares compiles what it compares with",
                                                  "make it before the capture begins"));
  auto definitions = std::make_shared<Definitions>();
  std::vector<Step> compared;
  for (const PlanCore::Part &part : comparing.core->parts) {
    if (!isComparable(part.step))
      continue;
    NSA_ASSIGN_OR_RETURN(std::shared_ptr<const KernelCore> definition,
                         planner->define(tunableTask(part.step.spec, part.step.maxima)));
    definitions->kernels[static_cast<size_t>(part.step.role)] = (definition)->kernel;
    compared.push_back(part.step);
  }
  comparing.layout.addComparison(comparing.rules.spec, maxima, compared, definitions->workspaceBytes());
  NSA_RETURN_IF_ERROR(comparing.layout.check(maxima));
  comparing.comparison = std::make_unique<ComparisonState>();
  comparing.comparison->definitions = std::move(definitions);
  return Status::ok();
}

Result<std::vector<PlanCore::Part>> Engine::partsOf(const Spec &spec, const Maxima &maxima,
                                                    const MakeParts &makeParts) {
  const Routing routing = planner->route(spec, maxima);
  Result<std::vector<PlanCore::Part>> parts = makeParts(routing.steps());
  if (parts || !routing.mayAvoidStep() || !isOfKernel(parts.status().code()))
    return parts;
  // No kernel of another problem can serve in the place of decode_step. Each kernel that it replaces may have one.
  Result<std::vector<PlanCore::Part>> others = makeParts(planner->route(spec, maxima, /*avoidsStep=*/true).steps());
  if (!others)
    return parts;
  const bool isUsual =
      parts.status().code() == ErrorCode::kCacheMiss || parts.status().code() == ErrorCode::kUnsupported;
  logger.log(isUsual ? LogLevel::kInfo : LogLevel::kWarning, "engine",
             "decode_step cannot serve, so the kernels that it replaces do: " + parts.status().error().message);
  return others;
}

Result<std::shared_ptr<const PlanCore>> Engine::make(const Spec &spec, const Maxima &maxima) {
  const ProfilerRange range("nsa plan");
  NSA_ASSIGN_OR_RETURN(std::vector<PlanCore::Part> parts,
                       partsOf(spec, maxima, [&](const Steps &steps) { return planner->makeParts(steps); }));
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanCore> core, PlanCore::make(std::move(parts)));
  for (const PlanCore::Part &part : core->parts)
    ownCounters.add(part.kernel->times);
  // The kernels of a plan with batch_invariant were not chosen for its sizes.
  NSA_RETURN_IF_ERROR(core->checkGrids(spec, maxima));
  return core;
}

Status Engine::tuneMeanwhile(const PlanKey &key, const BackgroundTuner::StopSignal &stop, bool &better) {
  // A kernel that fails takes nothing from the others: each has what it got.
  Status firstFailure;
  TunedKernels tuned;
  for (const PlanCore::Part &part : plans.find(key)->parts) { // the plan was made before
    if (stop() || !wantsTuning(part))
      continue;
    Result<std::shared_ptr<const KernelCore>> kernel =
        planner->tuneMeanwhile(tunableTask(part.step.spec, part.step.maxima), stop);
    if (kernel) {
      ownCounters.add((*kernel)->times);
      tuned[part.kernel->problemKey] = std::move(*kernel);
    } else if (firstFailure.isOk()) {
      firstFailure = kernel.status();
    }
  }
  NSA_RETURN_IF_ERROR(takeOver(key, tuned, better));
  return firstFailure;
}

Status Engine::takeOver(const PlanKey &key, const TunedKernels &tuned, bool &better) {
  for (;;) {
    const PlanCore *present = plans.find(key);
    std::vector<PlanCore::Part> parts = present->parts;
    bool isChanged = false, isBetter = false;
    for (PlanCore::Part &part : parts) {
      const auto found = tuned.find(part.kernel->problemKey);
      if (found == tuned.end() || !wantsTuning(part))
        continue;
      const KernelCore &was = *part.kernel, &is = *found->second;
      isBetter = isBetter || is.kernel != was.kernel || is.tuned != was.tuned || is.step != was.step;
      part.kernel = found->second;
      isChanged = true;
    }
    if (!isChanged)
      return Status::ok();
    NSA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanCore> core, PlanCore::make(std::move(parts)));
    if (plans.replace(key, present, std::move(core))) {
      better = isBetter;
      return Status::ok();
    }
  }
}

void Engine::keep(const Spec &spec, const Maxima &maxima, ErrorCode outcome) {
  if (!record || (outcome != ErrorCode::kOk && outcome != ErrorCode::kCacheMiss && outcome != ErrorCode::kUnavailable))
    return;
  if (const Status status = record->add(spec, maxima); !status.isOk())
    logger.log(LogLevel::kWarning, "record", status.error().message);
}

std::string Engine::deviceName() const {
  return !options.device.empty() ? options.device : ownDevice->isGpu() ? "cuda:0" : "cpu";
}

Status Engine::withHint(Status status, const TunedSubject &subject) const {
  if (status.code() != ErrorCode::kCacheMiss)
    return status;
  ErrorInfo info = status.error();
  info.hint = tuneHint({subject, deviceName(), cache->path(), options.pinPath, options.templateDir,
                        ownDevice->isGpu() ? "" : options.cpuFeatures, options.decodeSplits, options.ignoreThresholds});
  return Status(std::move(info));
}

Result<std::vector<ExplainDescription>> Engine::choices(const Spec &asked, const Maxima &maxima) {
  NSA_RETURN_IF_ERROR(checkRequest(asked, maxima));
  const Spec spec = changedSpec(asked, maxima);
  const PlanCore *core = findInMemory(keyOf(spec, maxima), spec, maxima);
  const auto choicesOf = [&](const Routing &routing) {
    std::vector<ExplainDescription> choices;
    for (const Step &step : routing.steps()) {
      ExplainDescription found =
          planner->explain(tunableTask(step.spec, step.maxima), describeRoute(routing, step), core != nullptr);
      // A kernel that is never tuned has nothing to choose, so only its absence and its route are told.
      if (isTuned(step.spec.op) || found.fails() || !found.route.name.empty())
        choices.push_back(std::move(found));
    }
    return choices;
  };
  const Routing routing = planner->route(spec, maxima);
  std::vector<ExplainDescription> choices = choicesOf(routing);
  // As `make` decides, or has decided.
  if (routing.mayAvoidStep() && (core ? !core->decodeStep : std::ranges::any_of(choices, &ExplainDescription::fails)))
    choices = choicesOf(planner->route(spec, maxima, /*avoidsStep=*/true));
  return choices;
}

Result<std::string> Engine::explain(const Spec &spec, const Maxima &maxima) {
  NSA_ASSIGN_OR_RETURN(const std::vector<ExplainDescription> found, choices(spec, maxima));
  std::vector<std::string> texts;
  for (const ExplainDescription &choice : found)
    texts.push_back(describeExplain(choice));
  return joinTexts(texts);
}

Result<std::string> Engine::tune(const Spec &asked, const Maxima &maxima, double budgetSeconds) {
  NSA_RETURN_IF_ERROR(checkRequest(asked, maxima));
  Spec spec = asked;
  spec.decodeStep = forcesStep(asked, maxima, options.forceVariant);
  std::vector<std::string> reports;
  NSA_ASSIGN_OR_RETURN(std::vector<PlanCore::Part> parts,
                       partsOf(spec, maxima, [&](const Steps &steps) -> Result<std::vector<PlanCore::Part>> {
                         reports.clear();
                         std::vector<PlanCore::Part> made;
                         for (const Step &step : steps) {
                           std::string report;
                           NSA_ASSIGN_OR_RETURN(
                               std::shared_ptr<const KernelCore> kernel,
                               planner->tune(tunableTask(step.spec, step.maxima), report, budgetSeconds));
                           if (!report.empty())
                             reports.push_back(std::move(report));
                           made.push_back({step, std::move(kernel)});
                         }
                         return made;
                       }));
  NSA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanCore> made, PlanCore::make(std::move(parts)));
  const PlanCore *core = plans.put(keyOf(spec, maxima), std::move(made));
  keep(spec, maxima, ErrorCode::kOk); // later plans of it come from memory
  for (const PlanCore::Part &part : core->parts)
    ownCounters.add(part.kernel->times);
  Counters::raise(core->source == PlanSource::kCompiled ? ownCounters.plansCompiled : ownCounters.plansFromDatabase);
  return joinTexts(reports);
}

Result<std::string> Engine::tuneKernel(const Spec &spec, const Maxima &maxima, const std::string &problem,
                                       double budgetSeconds) {
  NSA_RETURN_IF_ERROR(checkRequest(spec, maxima));
  // Also what serves where no threshold is followed: they may change.
  std::vector<Step> steps = stepsOf(spec, maxima);
  for (Step &step : planner->route(spec, maxima).steps())
    steps.push_back(std::move(step));
  for (const Step &step : steps) {
    if (Problem::make(step.spec, step.maxima).key() != problem)
      continue;
    std::string report;
    NSA_RETURN_IF_ERROR(planner->tune(tunableTask(step.spec, step.maxima), report, budgetSeconds).status());
    return joinTexts(report.empty() ? std::vector<std::string>() : std::vector{report});
  }
  return Status::invalid("kernel", problem, "must be the key of one of the operator's kernels",
                         "they are " + problemTexts(spec, maxima));
}

DeviceFacts Engine::deviceFacts() const {
  DeviceFacts facts = {
      {"kind", ownDevice->isGpu() ? "gpu" : "cpu"}, {"key", ownDevice->key()}, {"choice_key", planner->choiceKey()}};
  for (std::pair<std::string, std::string> &fact : ownDevice->facts())
    facts.push_back(std::move(fact));
  return facts;
}

std::string Engine::describe() const {
  EngineDescription description;
  description.device = deviceFacts();
  description.gpuTrouble = gpuTrouble;
  description.cachePath = cache->path();
  description.cacheTrouble = cache->trouble();
  if (pin) {
    description.pinPath = pin->path();
    description.pinChoices = pin->size();
    description.pinDigest = pin->digest();
  }
  if (gateOverride)
    description.gateOverride = gateOverride->text();
  description.fallbacks = options.fallbacks->toString();
  description.compilerPath = CompilerLibrary::resolvePath(options.compilerPath);
  // Looked at, not opened: describing an engine must not pull LLVM into the process.
  if (access(description.compilerPath.c_str(), R_OK) != 0)
    description.compilerTrouble = "not found; kernels that no cache holds cannot be made";
  description.policy = *options.missPolicy;
  return describeEngine(description);
}

} // namespace nsa
