// What an engine is opened with. The one place that reads the environment: once, when an engine opens.
// Thread-safety: values.
#pragma once

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/engine/fallback_ladder.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace nsa {

// The numbers are part of the C ABI (nsa_miss_policy in nsa/nsa.h).
enum class MissPolicy : int { kDefault = 0, kFail = 1, kTune = 2, kBackground = 3 };
std::string_view missPolicyName(MissPolicy policy); // "default", "fail", "tune", "background"
Result<MissPolicy> parseMissPolicy(std::string_view field, std::string_view name);

// Empty, zero or unset means: the environment's value, else the built-in one.
struct EngineOptions {
  std::string device; // "cpu", "cuda:N"; stays empty when nobody chose
  std::string cachePath;
  std::string cachePacks; // files separated by ':'; "none": not even the installed ones
  std::string cacheKeys;  // files separated by ':'
  bool requireSignature = false;
  int64_t cacheMaxBytes = 0; // 0: no limit
  std::optional<MissPolicy> missPolicy;
  double tuneBudgetSeconds = 0;
  bool tuneExhaustive = false;            // every candidate is compiled and measured to the end
  bool ignoreThresholds = false;          // measured thresholds decide nothing
  int decodeSplits = 0;                   // of Spec::keySplits; 0: as measured, else as the rule says
  std::optional<FallbackSteps> fallbacks; // what may serve in the place of a kernel of the problem's own
  std::string pinPath;                    // where choices come from, and from nowhere else; "none": all
  std::string compilerPath;               // stays empty for the library beside libnsa.so
  std::string nvrtcPath;
  std::string templateDir;
  std::string forceVariant;
  std::string dumpDir;
  std::string profilerPath; // of the environment alone: the profiler sets it
  std::string forceBranch;  // "cmp", "sel", "win": its gate is 1, the others' 0
  int uniformGate = 0;      // 1: all gates are alike
  int cpuThreads = 0;
  int compileThreads = 0;
  std::string cpuFeatures;
  Logger::Sink log; // unset: lines on stderr
  std::optional<LogLevel> logLevel;
  int logLimit = 0; // warnings of a tag and minute; -1: no limit

  using Environment = std::function<const char *(const char *name)>; // nullptr: not set
  // Fills what is unset and checks the rest. The error names the option, or the variable it came from.
  Status resolve(const Environment &environment);
  static Environment processEnvironment();
};

} // namespace nsa
