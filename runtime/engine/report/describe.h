// Makes the JSON texts that the C ABI returns. The names of the JSON fields are part of the API: tools and tests read
// them.
// Thread-safety: pure functions.
#pragma once

#include "autotune/tuner/threshold.h"
#include "autotune/tuner/tuner.h"
#include "cache/kernel_store.h"
#include "runtime/engine/choices/decision.h"
#include "runtime/engine/graph/plan_core.h"
#include "runtime/engine/graph/routing.h"
#include "runtime/engine/options/options.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa {

// Names and values, in the order in which a person reads them.
using DeviceFacts = std::vector<std::pair<std::string, std::string>>;

struct PlanDescription {
  const PlanCore &core;
  const Spec &spec;
  const Maxima &maxima;
  PlanSource source;
  std::string deviceKey;
  size_t workspaceBytes;
};
std::string describePlan(const PlanDescription &plan);
// Describes the kernel of a program of one's own.
std::string describeProgram(const KernelCore &core, PlanSource source, const std::string &deviceKey,
                            size_t workspaceBytes);
// The facts of a plan that programs read (nsa_plan_info).
struct PlanInfo {
#define NSA_PLAN_INFO(type, name, place) type name{};
#include "runtime/model/info_fields.def"
};
PlanInfo infoOf(const PlanDescription &plan);

// What programs read of one launch of a plan (nsa_launch).
using LaunchGrid = int32_t[3];
struct LaunchInfo {
#define NSA_LAUNCH_INFO(type, name, place) type name{};
#include "runtime/model/info_fields.def"
};
std::vector<LaunchInfo> launchesOf(const PlanDescription &plan);

struct TuningDescription {
  std::string problem, device, shape;
  std::string cut; // how much of the call was timed (cutText)
  uint64_t seed = 0;
  double milliseconds = 0;
  TuneReport report;
  bool exhaustive = false;
  std::string storeTrouble; // why the winner was not stored; "" when it was
};
std::string describeTuning(const TuningDescription &tuning);
// Describes a result that another caller tuned and stored while this caller waited. The JSON text that
// describeTuningElsewhere returns lacks the fields that only the caller that tuned can know, such as the seed.
std::string describeTuningElsewhere(const StoredChoice &choice, double milliseconds);

// Says which kind of kernel computes a part of an operator. For some parts of an operator, the lengths decide between
// two kinds of kernel, such as dense attention and attention to selected blocks.
struct RouteDescription {
  // For which lengths of a sequence one of the two ways is taken.
  struct Threshold {
    std::string_view way;
    PayingSide side = PayingSide::kFrom;
    int64_t keys = StoredRoute::kNever; // StoredRoute::kNever: for none
  };
  std::string part{};                   // roleName
  std::string_view name{};              // of the way that is taken; "" where there is only one
  std::string_view other{};             // of the way that is not taken
  std::optional<Threshold> threshold{}; // absent: no length decides
  std::string_view source{};            // "exact", "rule", "force_variant", or the name of the measured threshold
  std::string why{};
  std::array<int64_t, 3> splits{}; // programs that share keys, by branch
  std::string splitsSource{};      // "": keys are not shared; else "rule", "rule, as measured", "batch_invariant",
                                   // "decode_splits", or a route's name
};

// Says what the lengths decide of a step before its kernel is looked up.
RouteDescription describeRoute(const Routing &routing, const Step &step);

struct ExplainDescription {
  std::string problem, device;
  RouteDescription route;
  std::string measuredTemplate; // the template that the threshold names for this problem
  bool inMemory = false;
  Decision decision;
  std::string fallbacks;   // the steps that are allowed
  std::string choicePlace; // the file of the problem's own choice; without a choice, where it was looked for
  MissPolicy policy = MissPolicy::kDefault;
  std::vector<Candidate> candidates; // the candidates that a miss would choose from
  std::string candidatesTrouble;

  // Returns whether the plan cannot be made because no kernel can be used for this step.
  bool fails() const { return !inMemory && decision.action == Decision::Action::kFail; }
  bool isChosen() const { return decision.action != Decision::Action::kFail; }
  // The template and the configuration of the kernel that is chosen.
  std::string templateName() const;
  std::string config() const;
  PlanSource source() const; // of the kernel that is chosen
  bool tunesInBackground() const;
  // Why the kernel is chosen, or why none is. The numbers are part of the C ABI (nsa_reason).
  enum class Reason : int { kMeasured, kStored, kOther, kSearch, kCostModel, kMiss, kError };
  Reason reason() const;
};
std::string describeExplain(const ExplainDescription &explain);
// What programs read of the same (nsa_choice).
struct ChoiceInfo {
#define NSA_CHOICE_INFO(type, name, place) type name{};
#include "runtime/model/info_fields.def"
};
ChoiceInfo infoOf(const ExplainDescription &explain);

struct EngineDescription {
  DeviceFacts device;
  std::string gpuTrouble; // why the default device is not a GPU; "" when it is one, or when no GPU was tried
  std::string cachePath, cacheTrouble;
  std::string pinPath, pinDigest; // "" where nothing is pinned
  size_t pinChoices = 0;
  std::string gateOverride; // "" when the caller's gates count
  std::string fallbacks;
  std::string compilerPath, compilerTrouble;
  MissPolicy policy = MissPolicy::kDefault;
};
// Joins the JSON texts of an operator's kernels, in the order of their launches, as the array `kernels`. joinTexts
// returns a single JSON text unchanged.
std::string joinTexts(const std::vector<std::string> &texts);

std::string describeEngine(const EngineDescription &engine);

} // namespace nsa
