#include "runtime/engine/plan/planner.h"

#include "runtime/engine/choices/kernel_match.h"
#include "runtime/engine/compile/default_kernel.h"
#include "runtime/engine/compile/source_dump.h"
#include "runtime/engine/compile/template_folder.h"
#include "runtime/engine/report/describe.h"
#include "runtime/engine/report/profiler_range.h"
#include "runtime/engine/report/stopwatch.h"
#include "runtime/engine/tune/tuning_session.h"

#include <algorithm>

namespace nsa {

namespace {

// Longer than any default takes to compile. Who waits for a tuning adds twice his own budget.
constexpr std::chrono::milliseconds kLongestWait{60000};
constexpr double kLongestBudget = 86400;                    // seconds: whatever the budget, a wait ends
constexpr const char *kExhaustively = " search=exhaustive"; // in the provenance of such a winner

// Describes a kernel that serves where nothing was measured.
constexpr std::string_view kUnmeasured = "the default configuration, compiled and not measured";

} // namespace

Planner::Planner(Device &device, std::string choiceDevice, KernelCache &cache, ChoiceSource &choices,
                 const EngineOptions &options, const Logger &logger, Counters &counters)
    : device(device), choiceDevice(std::move(choiceDevice)), cache(cache), choices(choices), options(options),
      logger(logger), counters(counters) {}

Planner::Search Planner::begin(const Spec &spec, const Maxima &maxima) const {
  Search search{spec, maxima, Problem::make(spec, maxima), std::make_shared<KernelCore>()};
  search.core->problemKey = search.problem.key();
  search.waits = *options.missPolicy != MissPolicy::kBackground;
  return search;
}

Result<std::shared_ptr<const KernelCore>> Planner::make(Search &search) {
  // A choice of the problem's own is no fallback, so it counts whatever steps are allowed.
  if (search.superseded)
    if (std::shared_ptr<const KernelCore> made = remake(search))
      return made;
  const MissPolicy policy = *options.missPolicy;
  const bool tunes = policy == MissPolicy::kTune && isTuned(search.spec.op);
  const bool compiles = mayCompile(search.spec.op);
  if (!compiles || policy != MissPolicy::kTune)
    if (std::shared_ptr<const KernelCore> served = descend(search, rungsBeforeCompiling(search.spec.op)))
      return served;
  if (!compiles)
    return cacheMiss(search);
  // A default does not wait for a tuning, which takes much longer than to make one.
  const std::string_view work = missPolicyName(tunes ? policy : MissPolicy::kDefault);
  std::shared_ptr<const KernelCore> found;
  std::unique_ptr<KeyLease> lease = claim(search, std::string(work), [&] { return (found = find(search)) != nullptr; });
  if (found)
    return found;
  if (tunes) {
    Result<std::shared_ptr<const KernelCore>> tuned = tuneNow(search, nullptr);
    if (tuned && !search.core->tuned) {
      if (!allows(search.spec.op, FallbackStep::kCompiled))
        return unmeasured(search);
      countFallback(search, FallbackStep::kCompiled, std::string(kUnmeasured));
    }
    if (tuned || tuned.status().code() != ErrorCode::kOutOfMemory || !allows(search.spec.op, FallbackStep::kCompiled))
      return tuned;
    // The host may have taken nearly all memory: no room for a tuner's tensors, but enough to run.
    search.core->fallbacks.push_back("not tuned: " + tuned.status().toString());
    logger.log(LogLevel::kWarning, "planner", search.core->fallbacks.back());
  }
  Result<std::shared_ptr<const KernelCore>> compiled = compileDefault(search);
  if (compiled) {
    if (search.core->source == PlanSource::kCompiled && isTuned(search.spec.op))
      countFallback(search, FallbackStep::kCompiled, std::string(kUnmeasured));
    return compiled;
  }
  if (std::shared_ptr<const KernelCore> served = descend(search, Rungs::kAny))
    return served;
  return compiled;
}

// The work was asked for, so only what another caller finished after this call began may stand for it.
Result<std::shared_ptr<const KernelCore>> Planner::tune(const Spec &spec, const Maxima &maxima, std::string &report,
                                                        double budgetSeconds) {
  if (!choices.takesChoices())
    return Status::invalid("pin_path", choices.places(), "pins the choices, so nothing is tuned",
                           "tune with an engine that has no pin_path (NSA_PIN)");
  if (*options.missPolicy == MissPolicy::kFail)
    return Status::invalid("miss_policy", "fail", "opens no compiler, so nothing is tuned",
                           "tune with an engine of another miss policy");
  Search search = begin(spec, maxima);
  search.waits = true;
  search.tuneBudgetSeconds = budgetSeconds;
  if (!isTuned(spec.op)) {
    std::shared_ptr<const KernelCore> stored = find(search);
    return stored ? Result<std::shared_ptr<const KernelCore>>(std::move(stored)) : compileDefault(search);
  }
  std::vector<Measurement> before;
  if (std::optional<ChoiceSource::Hit> hit = choices.find(search.core->problemKey, choiceDevice))
    before = std::move(hit->choice.evidence);
  std::shared_ptr<const KernelCore> found;
  StoredChoice choice;
  std::unique_ptr<KeyLease> lease = claim(search, std::string(missPolicyName(MissPolicy::kTune)), [&] {
    std::optional<ChoiceSource::Hit> hit = choices.find(search.core->problemKey, choiceDevice);
    if (!hit || !hit->choice.tuned || hit->choice.evidence == before)
      return false;
    std::optional<Manifest> manifest = accept(search, *hit, device.target());
    if (manifest && !isSuperseded(*manifest))
      found = load(search, *hit, std::move(*manifest));
    choice = std::move(hit->choice);
    return found != nullptr;
  });
  if (!found) {
    Result<std::shared_ptr<const KernelCore>> tuned = tuneNow(search, &report);
    if (!tuned || search.core->tuned)
      return tuned;
    // What was not measured takes the place of no winner.
    Search stored = begin(spec, maxima);
    std::shared_ptr<const KernelCore> winner = find(stored);
    return winner && winner->tuned ? Result<std::shared_ptr<const KernelCore>>(std::move(winner)) : tuned;
  }
  report = describeTuningElsewhere(choice, search.watch.milliseconds());
  return found;
}

std::chrono::milliseconds Planner::longestWait(std::string_view work) const {
  if (work != missPolicyName(MissPolicy::kTune))
    return kLongestWait;
  const double budget = std::min(options.tuneBudgetSeconds, kLongestBudget);
  return kLongestWait + std::chrono::milliseconds(static_cast<int64_t>(budget * 2e3));
}

// Null: there is no other caller to wait for. The caller makes the kernel while it holds the lease, unless `isDone`
// returned true.
std::unique_ptr<KeyLease> Planner::claim(const Search &search, const std::string &work,
                                         const std::function<bool()> &isDone, const std::function<bool()> &stop) {
  // A forced template is one run's wish: what it leaves behind, no other finds.
  // A pinned table gains nothing by what another makes.
  if (!forcedTemplate(search.spec.op).empty() || !choices.takesChoices())
    return nullptr;
  std::unique_ptr<KeyLease> lease = cache.lease(search.core->problemKey, choiceDevice, work);
  if (!lease)
    return nullptr;
  const std::chrono::milliseconds longest = longestWait(work);
  const std::string subject = "'" + search.core->problemKey + "' (" + work + ")";
  if (lease->look() == KeyLease::State::kElsewhere)
    logger.log(LogLevel::kInfo, "planner", "another caller makes " + subject + ": waiting for it");
  if (lease->acquire(longest, isDone, stop) == KeyLease::Outcome::kLate && !(stop && stop()))
    logger.log(LogLevel::kWarning, "planner",
               "waited " + std::to_string(longest.count() / 1000) + " s for another caller that makes " + subject +
                   ": made here too");
  return lease;
}

std::shared_ptr<const KernelCore> Planner::find(Search &search) {
  const Stopwatch watch; // without what others made meanwhile
  std::optional<ChoiceSource::Hit> hit = choices.find(search.core->problemKey, choiceDevice);
  search.core->times.lookupMs += watch.milliseconds();
  if (!hit)
    return nullptr;
  // The same rows again give the same answer; its reasons are told once. A kernel that was made again may have the same
  // content: what made it stands in its manifest alone.
  if (search.refused && search.refused->choice.content == hit->choice.content &&
      search.refused->choice.tuned == hit->choice.tuned && search.refused->kernel.manifest == hit->kernel.manifest)
    return nullptr;
  search.superseded.reset();
  std::optional<Manifest> manifest = accept(search, *hit, device.target());
  if (manifest) {
    if (std::string reason = whyPassedOver(hit->choice, *manifest); !reason.empty())
      search.core->fallbacks.push_back(std::move(reason));
    else if (search.waits && isSuperseded(*manifest))
      search.superseded = hit;
    else if (std::shared_ptr<const KernelCore> found = load(search, *hit, std::move(*manifest)))
      return found;
  }
  search.refused = std::move(hit);
  return nullptr;
}

std::shared_ptr<const KernelCore> Planner::refuse(Search &search, const Status &status) const {
  search.core->fallbacks.push_back("the stored kernel cannot serve: " + status.toString());
  logger.log(LogLevel::kWarning, "planner", search.core->fallbacks.back());
  return nullptr;
}

std::optional<Manifest> Planner::accept(Search &search, const ChoiceSource::Hit &hit, const std::string &target) const {
  Result<Manifest> manifest = Manifest::parse(hit.kernel.manifest);
  Status status = manifest ? checkServes(*manifest, search.problem, target) : manifest.status();
  if (status.isOk())
    return std::move(*manifest);
  refuse(search, status);
  return std::nullopt;
}

std::shared_ptr<const KernelCore> Planner::load(Search &search, const ChoiceSource::Hit &hit, Manifest manifest) {
  const bool outdated = isOutdated(search, manifest);
  if (Status status = adopt(search, hit.kernel.content, std::move(manifest), hit.kernel.binary); !status.isOk())
    return refuse(search, status);
  search.core->source = sourceOf(hit);
  search.core->tuned = hit.choice.tuned;
  search.core->outdated = outdated;
  return search.core;
}

std::string Planner::whyPassedOver(const StoredChoice &choice, const Manifest &manifest) const {
  if (*options.missPolicy == MissPolicy::kTune && !choice.tuned && isTuned(*parseOperator(manifest.op)))
    return "the stored kernel was never measured, and the policy is to tune";
  const std::string forced = forcedTemplate(*parseOperator(manifest.op));
  if (!forced.empty() && manifest.templateName != forced)
    return "the stored kernel is of template " + manifest.templateName + ", forced is " + forced;
  return "";
}

Status Planner::adopt(Search &search, std::string content, Manifest manifest, std::span<const std::byte> binary) {
  Stopwatch watch;
  std::shared_ptr<const LoadedKernel> kernel;
  {
    std::lock_guard lock(kernelMutex);
    if (auto found = kernels.find(content); found != kernels.end())
      kernel = found->second;
  }
  if (!kernel) {
    Result<std::shared_ptr<const LoadedKernel>> loaded =
        LoadedKernel::load(device, content, std::move(manifest), binary);
    if (!loaded)
      return loaded.status();
    Counters::raise(counters.kernelsLoaded);
    std::lock_guard lock(kernelMutex);
    kernel = kernels.emplace(std::move(content), std::move(*loaded)).first->second;
  }
  int32_t grid[3];
  NSA_RETURN_IF_ERROR(kernel->grid(GridSizes::ofMaxima(search.spec, search.maxima), grid));
  search.core->kernel = std::move(kernel);
  search.core->times.loadMs += watch.milliseconds();
  return Status::ok();
}

CompileRequest Planner::request(const Search &search) const {
  CompileRequest request;
  request.target = device.target();
  request.op = search.problem.opName();
  request.fixed = search.problem.fixed();
  request.templateName = forcedTemplate(search.spec.op);
  request.templateDir = options.templateDir;
  request.nvrtcPath = options.nvrtcPath;
  request.cpuFeatures = device.cpuFeatures();
  request.driverVersion = device.driverVersion();
  return request;
}

Result<std::shared_ptr<const CompilerLibrary>> Planner::compiler() {
  std::lock_guard lock(compilerMutex);
  if (compilerLibrary)
    return compilerLibrary;
  Result<std::shared_ptr<const CompilerLibrary>> opened = CompilerLibrary::open(options.compilerPath);
  if (opened)
    compilerLibrary = *opened;
  return opened;
}

std::string Planner::provenance() const {
  std::string text = compilerLibrary ? "compiler=" + compilerLibrary->sourceId() : "";
  if (device.driverVersion())
    text += " driver=" + std::to_string(device.driverVersion());
  return text;
}

Result<std::shared_ptr<const KernelCore>> Planner::define(const Step &step) {
  if (*options.missPolicy == MissPolicy::kFail)
    return Status::error(ErrorCode::kUnavailable,
                         "to compare, the kernels that define the operators must be compiled, and the miss policy is "
                         "to fail",
                         "compare with an engine of another miss policy");
  Search search = begin(step.spec, step.maxima);
  Result<std::shared_ptr<const CompilerLibrary>> library = compiler();
  if (!library)
    return library.status();
  CompileRequest wanted = request(search);
  wanted.templateName = definitionOf(step.spec.op).definingTemplate;
  Result<std::vector<Candidate>> candidates = (*library)->list(wanted);
  if (!candidates)
    return candidates.status();
  DefaultKernelCallbacks callbacks;
  callbacks.accept = [&](const CompileRequest &by, CompiledKernel &kernel) -> Status {
    Counters::raise(counters.kernelsCompiled);
    dump(by, kernel);
    return adopt(search, kernel.content, kernel.manifest, kernel.binary);
  };
  NSA_RETURN_IF_ERROR(makeDefaultKernel(**library, std::move(wanted), *candidates, callbacks));
  return std::shared_ptr<const KernelCore>(search.core);
}

Status Planner::store(const Search &search, const CompiledKernel &kernel, Origin origin) {
  StoredKernel stored{kernel.content, kernel.manifestText, kernel.binary};
  StoredChoice choice;
  choice.problem = search.core->problemKey;
  choice.device = withTemplates(choiceDevice, kernel.templates); // edited since the engine was opened, another one
  choice.content = kernel.content;
  choice.tuned = origin.tuned;
  choice.provenance = std::move(origin.provenance);
  choice.evidence = std::move(origin.evidence);
  if (!choices.takesChoices())
    return cache.put(stored, nullptr);
  if (forcedTemplate(search.spec.op).empty())
    return cache.put(stored, &choice);
  // A forced variant is one run's wish, not the best choice for the problem: only its kernel is kept.
  NSA_RETURN_IF_ERROR(cache.put(stored, nullptr));
  return Status::error(ErrorCode::kInvalidArgument,
                       "template " + options.forceVariant + " was forced, so it is not stored as a choice",
                       "tune without force_variant");
}

void Planner::dump(const CompileRequest &request, const CompiledKernel &kernel) {
  if (options.dumpDir.empty())
    return;
  if (Status status = dumpSources(*compilerLibrary, request, kernel, options.dumpDir); !status.isOk())
    logger.log(LogLevel::kWarning, "planner", status.toString());
}

Result<std::shared_ptr<const KernelCore>> Planner::compileDefault(Search &search) {
  const ProfilerRange range("nsa compile");
  Result<std::shared_ptr<const CompilerLibrary>> library = compiler();
  if (!library)
    return library.status();
  CompileRequest wanted = request(search);
  Result<std::vector<Candidate>> candidates = (*library)->list(wanted);
  if (!candidates)
    return candidates.status();
  followRoute(search, *candidates);

  DefaultKernelCallbacks callbacks;
  callbacks.accept = [&](const CompileRequest &by, CompiledKernel &kernel) -> Status {
    Counters::raise(counters.kernelsCompiled);
    search.core->times.renderMs += kernel.renderMs;
    search.core->times.compileMs += kernel.compileMs;
    dump(by, kernel);
    NSA_RETURN_IF_ERROR(adopt(search, kernel.content, kernel.manifest, kernel.binary));
    (void)store(search, kernel, {.provenance = provenance()}); // the cache has warned
    return Status::ok();
  };
  callbacks.refused = [&](const Candidate &candidate, const Status &why) {
    search.core->fallbacks.push_back(candidate.templateName + " " + candidate.config + ": " + why.toString());
    logger.log(LogLevel::kWarning, "planner", "candidate does not serve: " + search.core->fallbacks.back());
  };
  NSA_RETURN_IF_ERROR(makeDefaultKernel(**library, std::move(wanted), *candidates, callbacks));
  search.core->source = PlanSource::kCompiled;
  return std::shared_ptr<const KernelCore>(search.core);
}

Result<std::shared_ptr<const LoadedKernel>> Planner::serve(const Spec &spec, const Maxima &maxima) {
  Search search = begin(spec, maxima);
  if (std::optional<ChoiceSource::Hit> hit = choices.find(search.core->problemKey, choiceDevice))
    if (std::optional<Manifest> manifest = accept(search, *hit, device.target()))
      if (std::shared_ptr<const KernelCore> found = load(search, *hit, std::move(*manifest)))
        return found->kernel;
  Result<std::shared_ptr<const KernelCore>> made = compileDefault(search);
  if (!made)
    return made.status();
  return (*made)->kernel;
}

Result<std::shared_ptr<const KernelCore>> Planner::tuneMeanwhile(const Step &step, const std::function<bool()> &stop) {
  Search search = begin(step.spec, step.maxima);
  search.waits = true;
  const bool tunes = isTuned(step.spec.op);
  std::shared_ptr<const KernelCore> found;
  const auto isDone = [&] {
    found = find(search);
    if (found && tunes && !found->tuned)
      found = nullptr;
    return found != nullptr;
  };
  // Of what was measured, or has no choices, only the binary may be old.
  if (!isDone() && search.superseded && (!tunes || search.superseded->choice.tuned))
    found = remake(search, stop);
  std::unique_ptr<KeyLease> lease;
  if (!found && tunes)
    lease = claim(search, std::string(missPolicyName(MissPolicy::kTune)), isDone, stop);
  const Status stopped = Status::error(ErrorCode::kUnavailable, "the engine ends");
  if (found)
    return found;
  if (stop())
    return stopped;
  if (!tunes)
    return compileDefault(search);
  Result<std::shared_ptr<const KernelCore>> tuned = tuneNow(search, nullptr, &stop);
  if (stop())
    return stopped;
  return tuned && !search.core->tuned ? unmeasured(search) : tuned;
}

Status Planner::unmeasured(const Search &search) const {
  return Status::error(ErrorCode::kUnavailable,
                       "the budget of the tuner ended before it had measured anything for '" + search.core->problemKey +
                           "'",
                       "allow it more time: tune_budget_seconds (NSA_TUNE_BUDGET)");
}

Result<std::shared_ptr<const KernelCore>> Planner::tuneNow(Search &search, std::string *report,
                                                           const std::function<bool()> *stop) {
  const ProfilerRange range("nsa tune");
  Result<std::shared_ptr<const CompilerLibrary>> library = compiler();
  if (!library)
    return library.status();
  CompileRequest wanted = request(search);
  Result<std::vector<Candidate>> candidates = (*library)->list(wanted);
  if (!candidates)
    return candidates.status();

  Stopwatch watch;
  EngineOptions limited = options;
  if (search.tuneBudgetSeconds > 0)
    limited.tuneBudgetSeconds = search.tuneBudgetSeconds;
  if (stop)
    limited.compileThreads = 1;
  TuningSession session({device, **library, limited, logger, counters, memo,
                         [this](const Spec &spec, const Maxima &maxima) { return serve(spec, maxima); }, stop},
                        search.spec, search.maxima, wanted, *candidates);
  Result<TuneReport> tuned = session.run();
  if (!tuned)
    return tuned.status();
  if (stop && (*stop)())
    return Status::error(ErrorCode::kUnavailable, "the engine ends"); // what was not measured to its end is no winner
  const CompiledKernel &winner = session.winner();
  search.core->times.tuneMs = watch.milliseconds();
  search.core->times.renderMs = winner.renderMs;
  search.core->times.compileMs = winner.compileMs;
  wanted.templateName = winner.manifest.templateName;
  wanted.config = winner.manifest.config;
  dump(wanted, winner);
  {
    // The tuner has it loaded already.
    std::lock_guard lock(kernelMutex);
    kernels.emplace(winner.content, session.winnerKernel());
  }
  NSA_RETURN_IF_ERROR(adopt(search, winner.content, winner.manifest, winner.binary));
  // A default that was not measured is stored as untuned, so that it neither passes for a winner nor replaces one.
  const bool tunes = tuned->wasMeasured();
  const std::string how = (options.tuneExhaustive ? kExhaustively : "") + cutProvenance(session.cut());
  Status kept =
      store(search, winner,
            tunes ? Origin{true, provenance() + how, session.evidence()} : Origin{.provenance = provenance()});
  search.core->source = PlanSource::kCompiled;
  search.core->tuned = tunes;
  if (report)
    *report = describeTuning({search.core->problemKey, choiceDevice, session.timedShape().text(), session.cut(),
                              session.seed(), search.core->times.tuneMs, std::move(*tuned), options.tuneExhaustive,
                              kept.isOk() ? "" : kept.toString()});
  return std::shared_ptr<const KernelCore>(search.core);
}

} // namespace nsa
