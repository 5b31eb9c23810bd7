// What guides the planner beside a choice of the problem's own: measured thresholds and the fallback ladder; what it
// says when nothing serves, and what it would do.
#include "runtime/base/key_splits.h"
#include "runtime/engine/choices/kernel_match.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/plan/planner.h"
#include "runtime/engine/report/describe.h"

#include <algorithm>

namespace nsa {

namespace {

// Fallbacks that a process tries and cannot use are told; not each of many.
constexpr size_t kMostReasons = 3;

} // namespace

std::optional<StoredRoute> Planner::routeOf(const Search &search) {
  if (!hasVariants(search.spec.op) || options.ignoreThresholds || !isAsMeasured(search.spec, search.maxima))
    return std::nullopt;
  return storedRoute(routeFamily(search.spec), attentionRoute(search.spec.op));
}

std::optional<StoredRoute> Planner::storedRoute(const std::string &family, std::string_view name) {
  return choices.findRoute(family, choiceDevice, std::string(name));
}

Routing Planner::route(const Spec &spec, const Maxima &maxima) {
  Spec asked = spec;
  if (sharesKeys(spec, maxima))
    asked.keySplits = options.decodeSplits;
  return routingOf(asked, maxima, [&](const std::string &family, const std::string &name) {
    return options.ignoreThresholds ? std::nullopt : storedRoute(family, name);
  });
}

bool Planner::wantsSimple(const Search &search, const StoredRoute &route) {
  return route.threshold == StoredRoute::kNever || search.maxima.seqlenK < route.threshold;
}

// Below a measured threshold the simple template comes first, from it on last; otherwise the order is that of predicted
// costs, which between it and the others are guesses.
void Planner::followRoute(const Search &search, std::vector<Candidate> &candidates) {
  const std::optional<StoredRoute> route = routeOf(search);
  if (!route)
    return;
  const bool simpleFirst = wantsSimple(search, *route);
  std::vector<Candidate> ordered;
  for (const bool isSimple : {simpleFirst, !simpleFirst})
    for (const Candidate &candidate : candidates)
      if ((candidate.templateName == kSimpleTemplate) == isSimple)
        ordered.push_back(candidate);
  candidates = std::move(ordered);
}

LadderRequest Planner::ladderRequest(const Search &search) const {
  return {search.core->problemKey, choiceDevice, device.target(), forcedTemplate(search.spec.op)};
}

const std::vector<Rung> &Planner::rungsOf(Search &search) {
  if (!search.rungs) {
    search.rungs = rankFallbacks(ladderRequest(search), choices.choicesOf(search.problem.opName()));
    std::erase_if(*search.rungs, [&](const Rung &rung) { return !allows(search.spec.op, rung.step); });
  }
  return *search.rungs;
}

bool Planner::isBetterThanCompiling(const Rung &rung, std::optional<bool> simple) {
  if (simple && (rung.choice.templateName == kSimpleTemplate) != *simple)
    return false;
  return rung.step == FallbackStep::kNearest || (rung.step == FallbackStep::kModel && rung.choice.tuned);
}

std::shared_ptr<const KernelCore> Planner::descend(Search &search, Rungs wanted) {
  const std::optional<StoredRoute> route = wanted == Rungs::kAny ? std::nullopt : routeOf(search);
  const std::optional<bool> simple = route ? std::optional(wantsSimple(search, *route)) : std::nullopt;
  for (const Rung &rung : rungsOf(search))
    if (wanted == Rungs::kAny || isBetterThanCompiling(rung, simple))
      if (std::shared_ptr<const KernelCore> served = serveRung(search, rung))
        return served;
  return nullptr;
}

std::shared_ptr<const KernelCore> Planner::serveRung(Search &search, const Rung &rung) {
  std::optional<ChoiceSource::Hit> hit = choices.find(rung.choice.problem, rung.choice.device);
  if (!hit)
    return nullptr;
  const std::string subject = "the kernel stored for " + differenceText(ladderRequest(search), rung.choice) + " (" +
                              std::string(fallbackStepName(rung.step)) + ")";
  Result<Manifest> manifest = Manifest::parse(hit->kernel.manifest);
  Status status = manifest ? checkServes(*manifest, search.problem, rung.choice.target) : manifest.status();
  const bool isOwnCode = status.isOk() && rung.step != FallbackStep::kArchitecture;
  const bool again = isOwnCode && search.waits && isSuperseded(*manifest);
  if (again) {
    if (!makeAgain(search, *hit, rung.step))
      return nullptr; // it has said why
  } else if (status.isOk()) {
    const bool outdated = isOwnCode && isOutdated(search, *manifest);
    status = adopt(search, hit->kernel.content, std::move(*manifest), hit->kernel.binary);
    search.core->source = sourceOf(*hit);
    search.core->outdated = outdated;
  }
  if (!status.isOk()) {
    if (search.core->fallbacks.size() < kMostReasons)
      search.core->fallbacks.push_back(subject + " cannot serve: " + status.toString());
    return nullptr;
  }
  // A winner on one model is a guess on another.
  search.core->tuned = rung.step == FallbackStep::kNearest && hit->choice.tuned;
  if (!isTuned(search.spec.op))
    return search.core;
  search.core->servedBy = differenceText(ladderRequest(search), rung.choice);
  countFallback(search, rung.step, subject);
  return search.core;
}

void Planner::countFallback(Search &search, FallbackStep step, const std::string &text) {
  search.core->step = step;
  counters.countFallback(step);
  {
    std::lock_guard lock(toldMutex);
    if (!told.insert(search.core->problemKey).second)
      return;
  }
  logger.log(LogLevel::kInfo, "planner", "'" + search.core->problemKey + "' is served by " + text);
}

Status Planner::cacheMiss(const Search &search) {
  ErrorInfo info;
  info.code = ErrorCode::kCacheMiss;
  const bool fails = *options.missPolicy == MissPolicy::kFail;
  info.field = fails ? "miss_policy" : "fallbacks";
  info.value = fails ? "fail" : options.fallbacks->toString();
  const LadderRequest request = ladderRequest(search);
  const std::vector<ChoiceSummary> stored = choices.choicesOf(search.problem.opName());
  const ChoiceSummary *nearest = findNearest(request, stored);
  info.rule = !nearest ? "there is no kernel for " + search.problem.opName()
              : nearest->problem == request.problem && nearest->device == request.device
                  ? "the one that is there cannot serve"
                  : "nearest: " + differenceText(request, *nearest);
  info.message = "no stored kernel for '" + search.core->problemKey + "' on '" + choiceDevice + "'; " + info.rule +
                 "; looked in " + choices.places();
  if (std::string trouble = choices.trouble(); !trouble.empty())
    info.message += "; " + trouble;
  for (const std::string &fallback : search.core->fallbacks)
    info.message += "; " + fallback;
  return Status(std::move(info)); // the hint is the engine's, who knows what the caller asked for
}

Planner::Rungs Planner::rungsBeforeCompiling(Operator op) const {
  const bool takesAny = *options.missPolicy == MissPolicy::kBackground || !mayCompile(op);
  return takesAny ? Rungs::kAny : Rungs::kBetterThanCompiling;
}

bool Planner::mayCompile(Operator op) const {
  const MissPolicy policy = *options.missPolicy;
  return policy != MissPolicy::kFail &&
         ((policy == MissPolicy::kTune && isTuned(op)) || allows(op, FallbackStep::kCompiled));
}

void Planner::explainStored(Search &search, ExplainDescription &explain) {
  std::optional<ChoiceSource::Hit> hit = choices.peek(explain.problem, choiceDevice);
  if (!hit) {
    explain.choicePlace = choices.places();
    return;
  }
  explain.choiceSource = sourceOf(*hit);
  explain.choicePlace = choices.layerPath(hit->layer);
  Result<Manifest> manifest = Manifest::parse(hit->kernel.manifest);
  Status serves = manifest ? checkServes(*manifest, search.problem, device.target()) : manifest.status();
  if (manifest) {
    explain.choiceTemplate = manifest->templateName;
    explain.choiceConfig = formatValues(manifest->config);
  }
  explain.choiceTrouble = serves.isOk() ? whyPassedOver(hit->choice, *manifest) : serves.toString();
  if (serves.isOk() && explain.choiceTrouble.empty()) {
    explain.isChosen = true;
    explain.templateName = explain.choiceTemplate;
    explain.config = explain.choiceConfig;
    explain.tuned = hit->choice.tuned;
    explain.why = hit->choice.tuned ? "measured for this problem on this model" : "stored, but never measured";
    const bool isOld = isSuperseded(*manifest);
    explain.isRemade = isOld && search.waits;
    if (isOld && !search.waits)
      explain.why += "; made by another revision of the compiler: compiled again in the background";
    if (explain.isRemade)
      explain.choiceTrouble = "made by another revision of the compiler: it is compiled again with the same config";
  }
  explain.choice = std::move(hit->choice);
}

void Planner::explainLadder(Search &search, ExplainDescription &explain) {
  const bool takesAny = rungsBeforeCompiling(search.spec.op) == Rungs::kAny;
  const std::optional<bool> simple =
      explain.measured ? std::optional(wantsSimple(search, *explain.measured)) : std::nullopt;
  for (const Rung &rung : rungsOf(search)) {
    if (!takesAny && !isBetterThanCompiling(rung, simple))
      continue;
    std::optional<ChoiceSource::Hit> hit = choices.peek(rung.choice.problem, rung.choice.device);
    Result<Manifest> manifest = hit ? Manifest::parse(hit->kernel.manifest)
                                    : Result<Manifest>(Status::error(ErrorCode::kIoError, "no such row"));
    if (!manifest || !checkServes(*manifest, search.problem, rung.choice.target).isOk())
      continue;
    explain.isChosen = true;
    explain.step = rung.step;
    explain.templateName = manifest->templateName;
    explain.config = formatValues(manifest->config);
    explain.tuned = rung.step == FallbackStep::kNearest && hit->choice.tuned;
    explain.servedBy = rung.choice;
    explain.distance = rung.distance;
    explain.why = "stored for " + differenceText(ladderRequest(search), rung.choice);
    return;
  }
}

ExplainDescription Planner::explain(const Step &step, const RouteDescription &route, bool inMemory) {
  Search search = begin(step.spec, step.maxima);
  ExplainDescription explain;
  explain.problem = search.core->problemKey;
  explain.device = choiceDevice;
  explain.route = route;
  explain.inMemory = inMemory;
  explain.policy = *options.missPolicy;
  explain.fallbacks = options.fallbacks->toString();
  explain.measured = routeOf(search);
  if (explain.measured)
    explain.measuredTemplate = wantsSimple(search, *explain.measured) ? kSimpleTemplate : kTiledTemplate;
  explainStored(search, explain);
  if (!explain.isChosen && explain.policy != MissPolicy::kTune)
    explainLadder(search, explain);
  if (explain.policy == MissPolicy::kFail) {
    explain.candidatesTrouble = "not asked for: the miss policy is to fail";
    return explain;
  }
  Result<std::shared_ptr<const CompilerLibrary>> library = compiler();
  Result<std::vector<Candidate>> candidates =
      library ? (*library)->list(request(search)) : Result<std::vector<Candidate>>(library.status());
  if (candidates) {
    followRoute(search, *candidates);
    explain.candidates = std::move(*candidates);
  } else
    explain.candidatesTrouble = candidates.status().toString();
  if (!explain.isChosen && !explain.candidates.empty() && mayCompile(search.spec.op)) {
    explain.isChosen = true;
    explain.step = explain.policy == MissPolicy::kTune ? FallbackStep::kExact : FallbackStep::kCompiled;
    explain.templateName = explain.candidates.front().templateName;
    explain.config = explain.candidates.front().config;
    explain.why = explain.policy == MissPolicy::kTune ? "the first of those that would be measured"
                                                      : "the cheapest by the cost model; nothing stored may serve";
  }
  return explain;
}

} // namespace nsa
