#include "runtime/engine/plan/planner.h"

#include "runtime/engine/choices/routes.h"
#include "runtime/engine/report/describe.h"
#include "runtime/engine/report/stopwatch.h"
#include "runtime/engine/tune/operator_trial.h"
#include "runtime/process/run_at_once.h"

#include <algorithm>
#include <utility>

namespace nsa {

namespace {

// Longer than any default takes to compile. Who waits for a tuning adds twice his own budget.
constexpr std::chrono::milliseconds kLongestWait{60000};
constexpr double kLongestBudget = 86400; // seconds: whatever the budget, a wait ends

using Action = Decision::Action;

// What a lease is for; "" without one. A default does not wait for a tuning, which takes much longer than to make one.
// What serves in another's place is no choice for this problem, so other callers do not find it.
std::string workOf(const Decision &decision) {
  switch (decision.action) {
  case Action::kRemake:
    return decision.rung ? "" : "again";
  case Action::kTune:
    return std::string(missPolicyName(MissPolicy::kTune));
  case Action::kCompile:
    return std::string(missPolicyName(MissPolicy::kDefault));
  case Action::kAsk:
  case Action::kLoad:
  case Action::kFail:
    break;
  }
  return "";
}

} // namespace

Planner::Planner(Device &device, std::string choiceDevice, KernelCache &cache, ChoiceSource &choices,
                 const EngineOptions &options, const Logger &logger, Counters &counters)
    : device(device), choiceDevice(std::move(choiceDevice)), cache(cache), choices(choices), options(options),
      logger(logger), counters(counters), maker(device, cache, choices.takesChoices(), options, logger, counters),
      policy(policyOf(*options.missPolicy, *options.fallbacks, *options.missPolicy != MissPolicy::kBackground)) {}

ChoicePolicy Planner::policyOf(MissPolicy miss, FallbackSteps fallbacks, bool waits) const {
  return {.miss = miss,
          .fallbacks = fallbacks,
          .forceVariant = options.forcedTemplate(),
          .ignoreThresholds = options.ignoreThresholds,
          .waits = waits,
          .checkLaunch = [this](const SharedManifest &manifest, const KernelTask &task) {
            return LoadedKernel::check(device, manifest, task.sizes(), task.names());
          }};
}

Planner::Search Planner::begin(KernelTask task) const {
  Search search{{.task = std::move(task), .device = choiceDevice, .target = device.target()},
                std::make_shared<KernelCore>()};
  search.core->problemKey = search.request.task.key;
  return search;
}

Routing Planner::route(const Spec &spec, const Maxima &maxima, bool avoidsStep) {
  RouteRules rules = options.routeRules();
  rules.mayStep = mayStep() && !avoidsStep;
  return routingOf(spec, maxima, rules, [&](const std::string &family, const std::string &name) {
    return choices.findRoute(family, choiceDevice, name);
  });
}

Decision Planner::decideFor(Search &search, const ChoicePolicy &by) {
  const Stopwatch watch; // without what others made meanwhile
  Decision decision = decide(search.request, choices, by);
  if (decision.action == Action::kAsk) {
    search.request.compilerRevision = maker.compilerRevision();
    decision = decide(search.request, choices, by);
  }
  search.core->times.lookupMs += watch.milliseconds();
  return decision;
}

Decision Planner::decideToMake(Search &search, const ChoicePolicy &by) {
  for (;;) {
    Decision decision = search.decision ? *std::exchange(search.decision, std::nullopt) : decideFor(search, by);
    if ((decision.action != Action::kTune && decision.action != Action::kCompile) || !decision.candidates.empty())
      return decision;
    Result<std::vector<Candidate>> listed = maker.candidates(search.request);
    if (listed) {
      decision.candidates = ordered(*listed, decision.simple);
      search.request.candidates = std::move(*listed);
      return decision;
    }
    addFailure(search, decision, listed.status());
  }
}

Result<std::vector<PlanCore::Part>> Planner::makeParts(const std::vector<Step> &steps) {
  std::vector<Search> searches;
  std::vector<std::shared_ptr<const KernelCore>> kernels;
  std::vector<std::vector<size_t>> missing; // steps, those that want the same kernel together
  for (size_t i = 0; i < steps.size(); ++i) {
    searches.push_back(begin(tunableTask(steps[i].spec, steps[i].maxima)));
    kernels.push_back(find(searches[i]));
    if (kernels[i])
      continue;
    auto same = std::find_if(missing.begin(), missing.end(), [&](const std::vector<size_t> &others) {
      return searches[others.front()].request.task.key == searches[i].request.task.key;
    });
    if (same == missing.end())
      missing.push_back({i});
    else
      same->push_back(i);
  }

  const bool measures = *options.missPolicy == MissPolicy::kTune;
  const size_t threads = measures ? 1 : static_cast<size_t>(std::max(options.compileThreads, 1));
  NSA_RETURN_IF_ERROR(runAtOnce(missing.size(), threads, {"nsa-compile", "to make a kernel"}, [&](size_t group) {
    for (const size_t i : missing[group]) {
      // What the first of them has left behind serves the others.
      if (i != missing[group].front() && (kernels[i] = find(searches[i])))
        continue;
      NSA_ASSIGN_OR_RETURN(kernels[i], make(searches[i]));
    }
    return Status::ok();
  }));

  std::vector<PlanCore::Part> parts;
  for (size_t i = 0; i < steps.size(); ++i)
    parts.push_back({steps[i], std::move(kernels[i])});
  return parts;
}

void Planner::tellOwn(Search &search, const Decision &decision) const {
  if (decision.isOwnDamaged && !std::exchange(search.isToldOfOwn, true))
    logger.log(LogLevel::kWarning, "planner", decision.reasons.front());
}

std::shared_ptr<const KernelCore> Planner::find(Search &search) {
  choices.open();
  for (;;) {
    search.decision = decideFor(search, policy);
    tellOwn(search, *search.decision);
    if (search.decision->action != Action::kLoad)
      return nullptr;
    const Status status = act(search, policy, *search.decision, nullptr);
    if (status.isOk()) {
      std::shared_ptr<const KernelCore> found = finish(search, *search.decision);
      tellFallback(search, *search.decision);
      return found;
    }
    addFailure(search, *search.decision, status);
  }
}

Planner::Made Planner::make(Search &search) {
  Made made = execute(search, policy);
  if (made)
    tellFallback(search, *search.decision);
  return made;
}

Planner::Made Planner::execute(Search &search, const ChoicePolicy &by, const Stop *stop) {
  choices.open();
  for (;;) {
    Decision decision = decideToMake(search, by);
    tellOwn(search, decision);
    if (decision.action == Action::kFail)
      return decision.failure.isOk() ? cacheMiss(search, decision) : decision.failure;
    Decision later;
    const Stop isMadeElsewhere = [&] {
      later = decideFor(search, by);
      return later.isStoredChoice();
    };
    const std::unique_ptr<KeyLease> lease = claim(search, workOf(decision), isMadeElsewhere, stop);
    if (later.isStoredChoice())
      decision = std::move(later);
    const Status status =
        stop && (*stop)() ? Status::error(ErrorCode::kUnavailable, "the engine ends") : act(search, by, decision, stop);
    if (status.isOk()) {
      search.decision = decision;
      return finish(search, decision);
    }
    if (stop && (*stop)())
      return status;
    addFailure(search, decision, status);
  }
}

Status Planner::act(Search &search, const ChoicePolicy &by, const Decision &decision, const Stop *stop) {
  KernelCore &core = *search.core;
  core.step = decision.step;
  core.outdated = decision.outdated;
  switch (decision.action) {
  case Action::kLoad:
    NSA_RETURN_IF_ERROR(maker.load(search.request, decision, core));
    choices.noteUse(*decision.stored);
    return Status::ok();
  case Action::kRemake:
    NSA_RETURN_IF_ERROR(maker.remake(search.request, decision, core));
    choices.noteUse(*decision.stored);
    return Status::ok();
  case Action::kCompile:
    if (!search.request.tuning.isOk())
      logger.log(LogLevel::kWarning, "planner", "not tuned: " + search.request.tuning.toString());
    return maker.compileDefault(search.request, decision, core);
  case Action::kAsk:
  case Action::kTune:
    break;
  case Action::kFail:
    return decision.failure;
  }
  NSA_RETURN_IF_ERROR(maker.tune(search.request, tuning(stop), core));
  if (core.tuned)
    return Status::ok();
  core.step = FallbackStep::kCompiled;
  if (by.allows(search.request.task, FallbackStep::kCompiled))
    return Status::ok();
  return Status::error(ErrorCode::kUnavailable,
                       "the budget of the tuner ended before it had measured anything for '" + search.request.task.key +
                           "'",
                       "allow it more time: tune_budget_seconds (NSA_TUNE_BUDGET)");
}

void Planner::addFailure(Search &search, const Decision &decision, const Status &why) const {
  KernelRequest &request = search.request;
  switch (decision.action) {
  case Action::kLoad:
    request.unloadable.push_back({decision.stored->kernel.content, decision.stored->kernel.manifest, why});
    break;
  case Action::kRemake:
    request.notRemade.push_back({decision.stored->kernel.content, decision.stored->kernel.manifest, why});
    logger.log(LogLevel::kWarning, "planner",
               "the stored kernel is of another compiler revision and cannot be made again: " + why.toString());
    break;
  case Action::kTune:
    request.tuning = why;
    break;
  case Action::kCompile:
    request.compiling = why;
    break;
  case Action::kAsk:
  case Action::kFail:
    break;
  }
}

std::shared_ptr<const KernelCore> Planner::finish(Search &search, const Decision &decision) const {
  KernelCore &core = *search.core;
  core.fallbacks = decision.reasons;
  if (decision.action == Action::kCompile)
    core.fallbacks.insert(core.fallbacks.end(), search.request.refusedCandidates.begin(),
                          search.request.refusedCandidates.end());
  if (!search.request.task.isTuned)
    core.step = FallbackStep::kExact; // all stored kernels of the operator have the same configuration
  else
    core.servedBy = decision.difference;
  return search.core;
}

void Planner::tellFallback(const Search &search, const Decision &decision) {
  const FallbackStep step = search.core->step;
  if (step == FallbackStep::kExact)
    return;
  counters.countFallback(step);
  {
    std::lock_guard lock(toldMutex);
    if (!told.insert(search.request.task.key).second)
      return;
  }
  logger.log(LogLevel::kInfo, "planner",
             "'" + search.request.task.key + "' is served by " +
                 (decision.rung ? "the kernel stored for " + decision.difference + " (" +
                                      std::string(fallbackStepName(step)) + ")"
                                : "the default configuration, compiled and not measured"));
}

// Null: there is no other caller to wait for. The caller makes the kernel while it holds the lease, unless `isDone`
// returned true.
std::unique_ptr<KeyLease> Planner::claim(const Search &search, const std::string &work, const Stop &isDone,
                                         const Stop *stop) {
  // A forced template is one run's wish: what it leaves behind, no other finds.
  // A pinned table gains nothing by what another makes.
  if (work.empty() || !policy.forcedTemplate(search.request.task).empty() || !choices.takesChoices())
    return nullptr;
  std::unique_ptr<KeyLease> lease = cache.lease(search.request.task.key, choiceDevice, work);
  if (!lease)
    return nullptr;
  std::chrono::milliseconds longest = kLongestWait;
  if (work == missPolicyName(MissPolicy::kTune))
    longest +=
        std::chrono::milliseconds(static_cast<int64_t>(std::min(options.tuneBudgetSeconds, kLongestBudget) * 2e3));
  const std::string subject = "'" + search.request.task.key + "' (" + work + ")";
  if (lease->look() == KeyLease::State::kElsewhere)
    logger.log(LogLevel::kInfo, "planner", "another caller makes " + subject + ": waiting for it");
  const bool isLate = lease->acquire(longest, isDone, stop ? *stop : Stop()) == KeyLease::Outcome::kLate;
  if (isLate && !(stop && (*stop)()))
    logger.log(LogLevel::kWarning, "planner",
               "waited " + std::to_string(longest.count() / 1000) + " s for another caller that makes " + subject +
                   ": made here too");
  return lease;
}

Planner::Made Planner::kernelOf(KernelTask task) {
  Search search = begin(std::move(task));
  if (std::shared_ptr<const KernelCore> found = find(search))
    return found;
  return make(search);
}

Planner::Made Planner::serve(KernelTask task) {
  Search search = begin(std::move(task));
  const ChoicePolicy own = policyOf(MissPolicy::kDefault, FallbackSteps::of({FallbackStep::kCompiled}), false);
  return execute(search, own);
}

KernelMaker::Tuning Planner::tuning(const Stop *stop) {
  return {.stop = stop,
          .serve = [this](const Spec &spec, const Maxima &maxima) -> Result<std::shared_ptr<const LoadedKernel>> {
            const Made made = serve(tunableTask(spec, maxima));
            return made ? Result<std::shared_ptr<const LoadedKernel>>((*made)->kernel) : made.status();
          }};
}

Planner::Made Planner::tuneMeanwhile(KernelTask task, const Stop &stop) {
  Search search = begin(std::move(task));
  const ChoicePolicy measured = policyOf(MissPolicy::kTune, FallbackSteps::of({}), true);
  return execute(search, measured, &stop);
}

std::shared_ptr<const KernelCore> Planner::loadOwn(Search &search, const Decision &decision) {
  return decision.isStoredChoice() && act(search, policy, decision, nullptr).isOk() ? finish(search, decision)
                                                                                    : nullptr;
}

Status Planner::checkTunes() const {
  if (!choices.takesChoices())
    return Status::invalid("pin_path", choices.places(), "pins the choices, so nothing is tuned",
                           "tune with an engine that has no pin_path (NSA_PIN)");
  if (policy.miss == MissPolicy::kFail)
    return Status::invalid("miss_policy", "fail", "opens no compiler, so nothing is tuned",
                           "tune with an engine of another miss policy");
  return Status::ok();
}

// The work was asked for, so only what another caller finished after this call began may stand for it.
Planner::Made Planner::tune(KernelTask task, std::string &report, double budgetSeconds) {
  NSA_RETURN_IF_ERROR(checkTunes());
  if (!task.isTuned)
    return serve(std::move(task));
  const Stopwatch watch;
  const ChoicePolicy measured = policyOf(MissPolicy::kTune, FallbackSteps::all(), true);
  choices.open();
  Search search = begin(task);
  const Decision::Stored before = decideFor(search, measured).own;
  std::shared_ptr<const KernelCore> found;
  Decision later;
  const Stop isTunedElsewhere = [&] {
    later = decideFor(search, measured);
    if (later.isStoredChoice() && !(before && before->choice.evidence == later.own->choice.evidence))
      found = loadOwn(search, later);
    return found != nullptr;
  };
  const std::unique_ptr<KeyLease> lease =
      claim(search, std::string(missPolicyName(MissPolicy::kTune)), isTunedElsewhere, nullptr);
  if (found) {
    report = describeTuningElsewhere(later.own->choice, watch.milliseconds());
    return found;
  }
  KernelMaker::Tuning how = tuning(nullptr);
  how.budgetSeconds = budgetSeconds;
  how.report = &report;
  NSA_RETURN_IF_ERROR(maker.tune(search.request, how, *search.core));
  if (search.core->tuned)
    return std::shared_ptr<const KernelCore>(search.core);
  // What was not measured takes the place of no winner.
  Search stored = begin(std::move(task));
  std::shared_ptr<const KernelCore> winner = loadOwn(stored, decideFor(stored, measured));
  return winner ? winner : search.core;
}

Planner::Made Planner::define(KernelTask task) {
  if (policy.miss == MissPolicy::kFail)
    return Status::error(ErrorCode::kUnavailable,
                         "to compare, the kernels that define the results must be compiled, and the miss policy is "
                         "to fail",
                         "compare with an engine of another miss policy");
  Search search = begin(std::move(task));
  NSA_RETURN_IF_ERROR(maker.define(search.request, *search.core));
  return std::shared_ptr<const KernelCore>(search.core);
}

Status Planner::cacheMiss(const Search &search, const Decision &decision) {
  ErrorInfo info;
  info.code = ErrorCode::kCacheMiss;
  const bool fails = policy.miss == MissPolicy::kFail;
  info.field = fails ? "miss_policy" : "fallbacks";
  info.value = fails ? "fail" : policy.fallbacks.toString();
  const LadderRequest ladder = search.request.ladder(policy);
  const std::vector<ChoiceSummary> stored = choices.choicesOf(search.request.task.problem.op);
  const ChoiceSummary *nearest = findNearest(ladder, stored);
  const KernelTask &task = search.request.task;
  info.rule = !nearest ? task.program ? "there is no kernel of this text of the program " + task.program->kernel
                                      : "there is no kernel for " + task.problem.op
              : nearest->problem == task.key && nearest->device == ladder.device
                  ? "the one that is there cannot serve"
                  : "nearest: " + differenceText(ladder, *nearest);
  info.message = "no stored kernel for '" + search.request.task.key + "' on '" + choiceDevice + "'; " + info.rule +
                 "; looked in " + choices.places();
  if (const std::string trouble = choices.trouble(); !trouble.empty())
    info.message += "; " + trouble;
  for (const std::string &reason : decision.reasons)
    info.message += "; " + reason;
  return Status(std::move(info)); // the engine adds the hint, because it knows what the caller asked for
}

ExplainDescription Planner::explain(KernelTask task, const RouteDescription &route, bool inMemory) {
  Search search = begin(std::move(task));
  search.request.explains = true;
  ExplainDescription explain;
  explain.problem = search.request.task.key;
  explain.device = choiceDevice;
  explain.route = route;
  explain.inMemory = inMemory;
  explain.policy = policy.miss;
  explain.fallbacks = policy.fallbacks.toString();
  explain.decision = decideToMake(search, policy);
  if (!search.request.task.isTuned)
    explain.decision.step = FallbackStep::kExact; // as in `finish`
  const Decision::Stored &own = explain.decision.own;
  explain.choicePlace = own ? choices.layerPath(own->layer) : choices.places();
  if (const std::optional<StoredRoute> &threshold = explain.decision.threshold)
    explain.measuredTemplate = wantsSimple(search.request, *threshold) ? kSimpleTemplate : kTiledTemplate;
  explain.candidates = explain.decision.candidates;
  if (!explain.candidates.empty())
    return explain;
  // What a miss would choose from.
  if (policy.miss == MissPolicy::kFail) {
    explain.candidatesTrouble = "not asked for: the miss policy is to fail";
    return explain;
  }
  Result<std::vector<Candidate>> listed = maker.candidates(search.request);
  if (!listed)
    explain.candidatesTrouble = listed.status().toString();
  else if (const std::optional<StoredRoute> &threshold = explain.decision.threshold)
    explain.candidates = ordered(*listed, wantsSimple(search.request, *threshold));
  else
    explain.candidates = std::move(*listed);
  return explain;
}

} // namespace nsa
