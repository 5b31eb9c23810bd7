// The options of an engine. Only EngineOptions reads the environment, once for each engine that opens.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/status.h"
#include "runtime/engine/choices/fallback_ladder.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/process/log.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nsa {

std::string_view missPolicyName(MissPolicy policy); // "default", "fail", "tune", "background"
Result<MissPolicy> parseMissPolicy(std::string_view field, std::string_view name);

// A flag that is on, off or unset. The bool `false` leaves a flag unset, so that an environment variable may set it.
class Switch {
public:
  constexpr Switch(bool isOn = false) : state(isOn ? 1 : 0) {}
  static constexpr Switch off() {
    Switch result;
    result.state = -1;
    return result;
  }
  constexpr operator bool() const { return state > 0; }
  constexpr bool isUnset() const { return state == 0; }

private:
  int state;
};

// What a budget without a limit is: more seconds than a program waits.
inline constexpr double kNoBudgetSeconds = 86400;

// The number of an option without a limit, even if the option's environment variable sets one.
inline constexpr int kOff = -1;

// A field of EngineOptions that is empty, zero or unset gets the value of its environment variable, or else its
// built-in default. A number that is kOff, a text that is kNone and a Switch that is off count as they are.
struct EngineOptions {
#define NSA_OPTION_TEXT(member, name) std::string member;
#define NSA_OPTION_SWITCH(member, name, variable) Switch member;
#define NSA_OPTION_NUMBER(type, member, name) type member = 0;
#include "runtime/model/engine_options.def"
  std::optional<MissPolicy> missPolicy;
  std::optional<FallbackSteps> fallbacks; // what may serve a problem that has no kernel of its own
  std::string profilerPath;               // from the environment alone, because the profiler sets it
  Logger::Sink log;                       // unset: lines on stderr
  std::optional<LogLevel> logLevel;
  // A callback of the host. The tuning thread calls `tuned` with the spec and the maxima of a plan when a new plan with
  // the same spec and maxima would have a better kernel.
  std::function<void(const Spec &spec, const Maxima &maxima)> tuned;

  using Environment = std::function<const char *(const char *name)>; // nullptr: not set
  // Fills the fields that are unset and checks all fields. The error of a bad field names the option, or the variable
  // that its value came from. All paths become absolute, because the host may change its working directory before the
  // child of a fork opens the files again.
  Status resolve(const Environment &environment);
  // Returns the option or the variable that a resolved path came from, or "" for a path that neither an option nor a
  // variable has given.
  std::string sourceOf(std::string EngineOptions::*path) const;
  std::string sourceOfVariant() const { return variantSource; } // the same of `forceVariant`
  // Returns the template that `force_variant` names, or "" where it names a way to compute a plan (isWay).
  std::string forcedTemplate() const { return isWay(forceVariant) ? "" : forceVariant; }
  RouteRules routeRules() const {
    return {.decodeSplits = decodeSplits, .ignoreThresholds = ignoreThresholds, .forceVariant = forceVariant};
  }
  static Environment processEnvironment();

private:
  Status resolvePaths(const Environment &environment);
  std::vector<const char *> pathSources; // in the order of pathOptions(); null: neither option nor variable
  const char *variantSource = "";
};

// A text of this value names nothing, whatever the option's environment variable says. For cache_packs, kNone stands
// for no pack at all, for cache_path for a database in memory, and for fallbacks for no step.
inline constexpr std::string_view kNone = "none";

// An option that names paths, and what the engine does with these paths (option_paths.h).
struct PathOption {
  enum class Kind {
    kFiles,     // files that are read, separated by ':'
    kPacks,     // files that are read, or kNone
    kLibrary,   // a library that is opened; the loader finds a name without '/'
    kFolder,    // a folder that is read
    kNewFolder, // a folder that is written, and made when it is missing
    kDatabase,  // a file that is read and written, and made when it is missing. The variable names its folder
    kOpened,    // a file that is opened, and so checked, when the engine opens; or kNone
  };
  const char *field, *variable;
  std::string EngineOptions::*member;
  Kind kind;
};
std::span<const PathOption> pathOptions();

} // namespace nsa
