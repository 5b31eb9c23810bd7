#include "runtime/engine/choices/decision.h"

#include "runtime/base/compiler_revision.h"
#include "runtime/engine/choices/kernel_match.h"
#include "runtime/engine/choices/routes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nsa {

namespace {

// Fallbacks that a process tries and cannot use are told; not each of many.
constexpr size_t kMostReasons = 3;

std::string_view compilerOf(const Manifest &manifest) {
  const auto found = manifest.evidence.find("compiler");
  return found == manifest.evidence.end() ? std::string_view() : found->second;
}

const KernelRequest::Failure *findFailure(const std::vector<KernelRequest::Failure> &failures,
                                          const StoredKernel &kernel) {
  const auto found = std::find_if(failures.begin(), failures.end(), [&](const KernelRequest::Failure &failure) {
    return failure.content == kernel.content && failure.manifest == kernel.manifest;
  });
  return found == failures.end() ? nullptr : &*found;
}

class Decider {
public:
  Decider(const KernelRequest &request, ChoiceSource &choices, const ChoicePolicy &policy)
      : request(request), choices(choices), policy(policy) {}

  Decision run() {
    if (request.explains)
      findThreshold();
    choose();
    if (asksCompiler) {
      result = {};
      result.action = Decision::Action::kAsk;
    }
    const bool isListed = result.action == Decision::Action::kTune || result.action == Decision::Action::kCompile;
    if (isListed && request.candidates)
      result.candidates = ordered(*request.candidates, result.simple);
    return std::move(result);
  }

private:
  void choose() {
    if (takesOwn())
      return;
    const KernelTask &task = request.task;
    const bool isTuning = policy.miss == MissPolicy::kTune;
    const bool tunes = isTuning && task.isTuned, compiles = policy.mayCompile(task);
    const bool compileFailed = !request.compiling.isOk(), tuneFailed = !request.tuning.isOk();
    if (tunes && tuneFailed) {
      // The host may have taken nearly all memory: no room for a tuner's tensors, but enough to run.
      if (request.tuning.code() != ErrorCode::kOutOfMemory || !policy.allows(task, FallbackStep::kCompiled))
        return fails(request.tuning);
      result.reasons.push_back("not tuned: " + request.tuning.toString());
    }
    result.reasons.insert(result.reasons.end(), request.refusedCandidates.begin(), request.refusedCandidates.end());
    const bool takesAny = policy.miss == MissPolicy::kBackground || !compiles || compileFailed;
    const bool descends = !isTuning || !compiles || compileFailed;
    if (compiles && !request.explains)
      findThreshold();
    if (descends && descend(takesAny))
      return;
    if (!compiles || compileFailed)
      return fails(request.compiling);
    if (tunes && !tuneFailed) { // a tuning measures both sides of a threshold
      result.action = Decision::Action::kTune;
      return;
    }
    result.action = Decision::Action::kCompile;
    if (result.threshold)
      result.simple = wantsSimple(request, *result.threshold);
    if (task.isTuned)
      result.step = FallbackStep::kCompiled;
  }

  void findThreshold() {
    if (!request.task.threshold || policy.ignoreThresholds)
      return;
    if (const std::optional<KernelTask::Route> route = request.task.threshold())
      result.threshold = choices.findRoute(route->family, request.device, route->name);
  }

  Decision::Stored find(const std::string &problem, const std::string &device) {
    std::optional<ChoiceSource::Hit> hit = choices.find(problem, device);
    return hit ? std::make_shared<const ChoiceSource::Hit>(std::move(*hit)) : nullptr;
  }

  void fails(const Status &why) {
    result.action = Decision::Action::kFail;
    result.failure = why;
  }

  // Returns "" if this engine may use an undamaged stored kernel of the problem, or else the reason why it may not.
  std::string whyPassedOver(const StoredChoice &choice, const Manifest &manifest) const {
    if (policy.miss == MissPolicy::kTune && !choice.tuned && request.task.isTuned)
      return "the stored kernel was never measured, and the policy is to tune";
    const std::string forced = policy.forcedTemplate(request.task);
    if (!forced.empty() && manifest.templateName != forced)
      return "the stored kernel is of template " + manifest.templateName + ", forced is " + forced;
    return "";
  }

  // Reads the manifest of a stored kernel. Returns an error if it cannot be read or does not serve the problem.
  Status read(const ChoiceSource::Hit &hit, const std::string &target, SharedManifest &manifest) const {
    NSA_ASSIGN_OR_RETURN(Manifest parsed, Manifest::parse(hit.kernel.manifest));
    manifest = std::make_shared<const Manifest>(std::move(parsed));
    return checkServes(*manifest, request.task.problem, target);
  }

  bool takesOwn() {
    result.own = find(request.task.key, request.device);
    if (!result.own)
      return false;
    Status status = read(*result.own, request.target, result.ownManifest);
    if (status.isOk()) {
      result.ownTrouble = whyPassedOver(result.own->choice, *result.ownManifest);
      if (result.ownTrouble.empty() && (status = take(result.own, result.ownManifest, FallbackStep::kExact)).isOk())
        return true;
    }
    if ((result.isOwnDamaged = !status.isOk()))
      result.ownTrouble = status.toString();
    result.reasons.push_back((result.isOwnDamaged ? "the stored kernel cannot serve: " : "") + result.ownTrouble);
    return false;
  }

  // Returns an error, and changes nothing, if the stored kernel cannot be loaded or launched.
  Status take(const Decision::Stored &stored, SharedManifest manifest, FallbackStep step) {
    const KernelRequest::Failure *failure = nullptr;
    bool isOutdated = false, isRemade = false;
    // The code of an older architecture cannot be compiled again for this device.
    const std::string_view revision = compilerOf(*manifest);
    if (step != FallbackStep::kArchitecture && revision != compilerRevision()) {
      isOutdated = !policy.waits && request.task.mayBeOutdated;
      failure = findFailure(request.notRemade, stored->kernel);
      // The runtime knows the revision of its own build, so that a hit opens no compiler. A compiler library of
      // another build has the last word.
      if (!isOutdated && !failure && policy.miss != MissPolicy::kFail) {
        asksCompiler = asksCompiler || !request.compilerRevision;
        const std::string atHand = request.compilerRevision.value_or("");
        isRemade = !atHand.empty() && atHand != revision;
      }
    }
    if (!isRemade) {
      if (const KernelRequest::Failure *unloadable = findFailure(request.unloadable, stored->kernel))
        return unloadable->why;
      NSA_RETURN_IF_ERROR(policy.checkLaunch(manifest, request.task));
    }
    if (isOutdated)
      result.reasons.push_back("the stored kernel is of another compiler revision: it serves until it is compiled "
                               "again in the background");
    if (failure)
      result.reasons.push_back("the stored kernel is of another compiler revision and cannot be made again: " +
                               failure->why.toString());
    result.action = isRemade ? Decision::Action::kRemake : Decision::Action::kLoad;
    result.outdated = isOutdated;
    result.step = step;
    // A winner on one model is a guess on another.
    result.tuned = stored->choice.tuned && (step == FallbackStep::kExact || step == FallbackStep::kNearest);
    result.stored = stored;
    result.manifest = std::move(manifest);
    return Status::ok();
  }

  // Returns true if the planner should use the stored kernel `rung` and not compile the default configuration. A kernel
  // that was stored for other lengths on this device model is as good as the default even if it was not measured,
  // because the default configuration does not depend on the length.
  bool isBetterThanCompiling(const Rung &rung) const {
    if (result.threshold && (rung.choice.templateName == kSimpleTemplate) != wantsSimple(request, *result.threshold))
      return false;
    return rung.step == FallbackStep::kNearest || (rung.step == FallbackStep::kModel && rung.choice.tuned);
  }

  bool descend(bool takesAny) {
    const LadderRequest ladder = request.ladder(policy);
    for (Rung &rung : rankFallbacks(ladder, choices.choicesOf(request.task.problem.op))) {
      if (!policy.allows(request.task, rung.step))
        continue;
      if (!takesAny && !isBetterThanCompiling(rung)) {
        if (result.worse.empty())
          result.worse = differenceText(ladder, rung.choice) + " (" + std::string(fallbackStepName(rung.step)) + ")";
        continue;
      }
      Decision::Stored stored = find(rung.choice.problem, rung.choice.device);
      if (!stored)
        continue;
      SharedManifest manifest;
      Status status = read(*stored, rung.choice.target, manifest);
      const std::string difference = differenceText(ladder, rung.choice);
      if (status.isOk() && (status = take(stored, std::move(manifest), rung.step)).isOk()) {
        result.difference = difference;
        result.rung = std::move(rung);
        return true;
      }
      if (result.reasons.size() < kMostReasons)
        result.reasons.push_back("the kernel stored for " + difference + " (" +
                                 std::string(fallbackStepName(rung.step)) + ") cannot serve: " + status.toString());
    }
    return false;
  }

  const KernelRequest &request;
  ChoiceSource &choices;
  const ChoicePolicy &policy;
  Decision result;
  bool asksCompiler = false;
};

} // namespace

LadderRequest KernelRequest::ladder(const ChoicePolicy &policy) const {
  return {task.problem, device, target, policy.forcedTemplate(task)};
}

Decision decide(const KernelRequest &request, ChoiceSource &choices, const ChoicePolicy &policy) {
  return Decider(request, choices, policy).run();
}

bool wantsSimple(const KernelRequest &request, const StoredRoute &threshold) {
  return threshold.threshold == StoredRoute::kNever || request.task.thresholdSize < threshold.threshold;
}

std::vector<Candidate> ordered(const std::vector<Candidate> &candidates, std::optional<bool> simple) {
  if (!simple)
    return candidates;
  std::vector<Candidate> result;
  for (const bool isSimple : {*simple, !*simple})
    std::ranges::copy_if(candidates, std::back_inserter(result), [&](const Candidate &candidate) {
      return (candidate.templateName == kSimpleTemplate) == isSimple;
    });
  return result;
}

} // namespace nsa
