// The JSON texts that the C ABI hands out. Field names are API: tools and tests read them.
// Thread-safety: pure functions.
#pragma once

#include "autotune/tuner.h"
#include "cache/kernel_store.h"
#include "runtime/engine/kernel_cache.h"
#include "runtime/engine/options.h"
#include "runtime/engine/plan.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace nsa {

struct PlanDescription {
  const PlanCore &core;
  const Spec &spec;
  const Maxima &maxima;
  PlanSource source;
  std::string deviceKey;
  size_t workspaceBytes;
};
std::string describePlan(const PlanDescription &plan);

struct TuningDescription {
  std::string problem, device, shape;
  uint64_t seed = 0;
  double milliseconds = 0;
  TuneReport report;
  bool exhaustive = false;
  std::string storeTrouble; // why the winner was not kept; "" when it was
};
std::string describeTuning(const TuningDescription &tuning);
// The same of a result that another caller stored while this one waited for it: without what only that one knows.
std::string describeTuningElsewhere(const StoredChoice &choice, double milliseconds);

// Which kernel stands for a part of an operator, where lengths decide.
struct RouteDescription {
  std::string part{};    // roleName
  std::string name{};    // "" where there is only one way
  int64_t threshold = 0; // longest sequence of keys for which dense attention is taken; StoredRoute::kNever
  std::string source{};  // "exact", or the name of the measured threshold
  std::string why{};
  std::array<int64_t, 3> splits{}; // programs that share keys, by branch
  std::string splitsSource{};      // "": nobody does; "rule", "rule, as measured", "decode_splits", or a route's name
};

struct ExplainDescription {
  std::string problem, device;
  RouteDescription route;
  std::optional<StoredRoute> measured; // a threshold that guides problems without a choice of their own
  std::string measuredTemplate;        // what it names for this one
  bool inMemory = false;
  // What a plan would run.
  bool isChosen = false, isRemade = false;
  FallbackStep step = FallbackStep::kExact;
  std::string templateName, config, why;
  bool tuned = false;
  std::optional<ChoiceSummary> servedBy; // of a stored fallback
  double distance = 0;
  std::string fallbacks;              // those that are allowed
  std::optional<StoredChoice> choice; // what the database holds
  std::string choiceTrouble;          // why it cannot serve; "" when it can
  std::string choiceTemplate, choiceConfig;
  MissPolicy policy = MissPolicy::kDefault;
  std::vector<Candidate> candidates; // what a miss would choose from
  std::string candidatesTrouble;
};
std::string describeExplain(const ExplainDescription &explain);

struct EngineDescription {
  bool gpu = false;
  std::string deviceKey, choiceKey; // as choices name the device: with a folder of templates, which
  std::vector<std::pair<std::string, std::string>> facts;
  std::string gpuTrouble; // why the default device is not a GPU; "" when it is or was not tried
  std::string cachePath, cacheTrouble;
  std::string pinPath, pinDigest; // "" where nothing is pinned
  size_t pinChoices = 0;
  std::string gateOverride; // "" where the caller's gates count
  std::string fallbacks;
  std::string compilerPath, compilerTrouble;
  MissPolicy policy = MissPolicy::kDefault;
};
// The texts of an operator's kernels as one: `kernels`, in the order of their launches. One text stays as it is.
std::string joinTexts(const std::vector<std::string> &texts);

std::string describeEngine(const EngineDescription &engine);

} // namespace nsa
