// Decides which kernel a problem gets: the stored kernel of the problem, a stored fallback, or a kernel that must be
// compiled or tuned first. The planner executes a Decision, and explain describes it.
// Thread-safety: values, and functions that many threads may call at once.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/engine/choices/choice_source.h"
#include "runtime/engine/choices/fallback_ladder.h"
#include "runtime/engine/choices/kernel_task.h"
#include "runtime/engine/compile/compiler_library.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

// What an engine allows. `decide` reads no other option of the engine.
struct ChoicePolicy {
  MissPolicy miss = MissPolicy::kDefault;
  FallbackSteps fallbacks;
  std::string forceVariant; // the only template for operators that have variants; "": any
  bool ignoreThresholds = false;
  // If `waits` is true, a stored kernel of another compiler revision is compiled again before it is used. If `waits` is
  // false, a stored kernel of another compiler revision is used at once and compiled again in the background.
  bool waits = true;
  // Returns the error that the device cannot launch the kernel of a manifest for a task. A kernel that is compiled
  // again is not checked, because it gets another manifest.
  std::function<Status(const SharedManifest &manifest, const KernelTask &task)> checkLaunch;

  // If a task has only one candidate, every kind of fallback is allowed, because all its stored kernels have the same
  // configuration.
  bool allows(const KernelTask &task, FallbackStep step) const { return !task.isTuned || fallbacks.allows(step); }
  bool mayCompile(const KernelTask &task) const {
    return miss != MissPolicy::kFail &&
           ((miss == MissPolicy::kTune && task.isTuned) || allows(task, FallbackStep::kCompiled));
  }
  std::string forcedTemplate(const KernelTask &task) const { return task.hasVariants ? forceVariant : ""; }
};

// What was asked for, and what has failed since. A failure that no stored row tells, such as a kernel that the device
// cannot launch, is added here by the planner, and `decide` then passes over what failed.
struct KernelRequest {
  struct Failure {
    std::string content, manifest; // of the stored kernel
    Status why;
  };
  KernelTask task;
  std::string device, target; // as stored choices write them
  bool explains = false;      // the decision also has the threshold that it does not need
  // What the planner asked the compiler, which it opens only for this.
  std::optional<std::string> compilerRevision{};      // "": there is no compiler
  std::optional<std::vector<Candidate>> candidates{}; // in the order of predicted costs

  std::vector<Failure> unloadable{}, notRemade{};
  Status tuning{}, compiling{}; // the errors of tuning, and of compiling the default
  std::vector<std::string> refusedCandidates{};

  LadderRequest ladder(const ChoicePolicy &policy) const;
};

struct Decision {
  enum class Action {
    kLoad,    // the stored kernel is used
    kRemake,  // the configuration of the stored kernel is compiled again
    kTune,    // candidates are compiled and measured
    kCompile, // the first candidate is compiled
    kFail,    // no kernel can be used
    kAsk,     // what the stored kernel needs depends on KernelRequest::compilerRevision
  };
  using Stored = std::shared_ptr<const ChoiceSource::Hit>;

  Action action = Action::kFail;
  FallbackStep step = FallbackStep::kExact;
  Stored stored;           // for kLoad and kRemake
  SharedManifest manifest; // of `stored`
  // True if the stored kernel was measured on this device model.
  bool tuned = false;
  bool outdated = false;    // the stored kernel is of another compiler revision, and is not compiled again first
  std::optional<Rung> rung; // for a stored fallback
  std::string difference;   // for a stored fallback: how its problem and device differ
  std::string worse;        // the best stored fallback to which compiling is preferred; "": none
  Status failure;           // for kFail: the error; ok: no stored kernel can be used, and none may be made
  // The measured threshold that chooses between templates; no value: there is none, or it was not needed.
  std::optional<StoredRoute> threshold;
  std::optional<bool> simple; // for kCompile: whether the threshold puts the simple template first
  // For kTune and kCompile: the candidates of the request, in the order in which they are tried.
  std::vector<Candidate> candidates;
  std::vector<std::string> reasons; // what was looked at and could not be used, and why

  // The problem's own choice, whether it can be used or not.
  Stored own;
  SharedManifest ownManifest; // null: it cannot be read
  std::string ownTrouble;     // "" if the choice can be used
  bool isOwnDamaged = false;  // ownTrouble is a fault of the row, and no wish of the policy

  bool isStoredChoice() const { return action == Action::kLoad && !rung; }
};

// Chooses what serves a request. `decide` opens, compiles and stores nothing: the same request, choices and policy give
// the same decision.
// 1. The problem's own choice, unless the row is damaged, the policy refuses it, or it failed to load.
// 2. Stored fallbacks in the order of rankFallbacks. Where a kernel may be compiled at once, only those that are better
//    than compiling the default. Under the policy `tune`, none.
// 3. Tuning or compiling, if the policy allows it.
// 4. All stored fallbacks, if compiling has failed.
Decision decide(const KernelRequest &request, ChoiceSource &choices, const ChoicePolicy &policy);

// Returns true if the problem's length is below the threshold, where the simple template is faster.
bool wantsSimple(const KernelRequest &request, const StoredRoute &threshold);
// Returns the candidates of a request in the order in which they are tried. Without a threshold this is the order of
// predicted costs. If `simple` is true, the simple template comes first; if `simple` is false, it comes last.
std::vector<Candidate> ordered(const std::vector<Candidate> &candidates, std::optional<bool> simple);

} // namespace nsa
