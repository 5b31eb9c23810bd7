#include "runtime/engine/options/options.h"

#include "runtime/base/key_splits.h"
#include "runtime/base/text.h"
#include "runtime/engine/options/cache_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

namespace nsa {

namespace {

constexpr double kTuneBudgetSeconds = 30;
constexpr std::string_view kPolicyNames[] = {"default", "fail", "tune", "background"};
constexpr int kMostThreads = 4096;
constexpr int kLogLimit = 20;
constexpr std::string_view kMemory = ":memory:"; // the database that is no file
constexpr PathOption kPathOptions[] = {
#define NSA_OPTION_PATH(member, name, variable, kind) {#name, variable, &EngineOptions::member, PathOption::Kind::kind},
#include "runtime/model/engine_options.def"
};

class Resolver {
public:
  explicit Resolver(const EngineOptions::Environment &environment) : environment(environment) {}

  // An empty variable counts as not set, as shells make it hard to tell.
  std::string_view lookup(const char *variable) const {
    const char *value = environment(variable);
    return value ? std::string_view(value) : std::string_view();
  }

  void text(std::string &option, const char *variable) const {
    if (option.empty())
      option = lookup(variable);
  }
  void textOrNone(std::string &option, const char *variable) const {
    text(option, variable);
    if (option == kNone)
      option.clear();
  }

  // Reads a number from the variable if the option is unset. `rule` says what the variable, and the option besides
  // kOff, may be. An option that is kOff becomes zero.
  template <typename Number>
  Status number(Number &option, const char *field, const char *variable, int64_t most, const std::string &rule) const {
    if (option == kOff) {
      option = 0;
      return Status::ok();
    }
    if (option < 0 || option > most)
      return Status::invalid(field, std::to_string(option), rule + ", or -1 to ignore " + variable);
    const std::string_view value = lookup(variable);
    if (option != 0 || value.empty())
      return Status::ok();
    if (!parseInteger(value, option) || option < 0 || option > most)
      return Status::invalid(variable, std::string(value), rule);
    return Status::ok();
  }

  Status flag(Switch &option, const char *variable) const {
    if (!option.isUnset())
      return Status::ok();
    const std::string_view value = lookup(variable);
    if (value != "" && value != "0" && value != "1")
      return Status::invalid(variable, std::string(value), "must be 0 or 1");
    option = value == "1";
    return Status::ok();
  }

  Status seconds(double &option, const char *field, const char *variable) const {
    if (option == kOff) {
      option = kNoBudgetSeconds;
      return Status::ok();
    }
    if (!std::isfinite(option) || option < 0)
      return Status::invalid(field, std::to_string(option),
                             "must be finite and positive, 0 for the default, or -1 for no limit");
    std::string value(lookup(variable));
    if (option != 0 || value.empty())
      return Status::ok();
    char *end = nullptr;
    option = std::strtod(value.c_str(), &end);
    if (*end != '\0' || !std::isfinite(option) || option <= 0)
      return Status::invalid(variable, value, "must be a positive number of seconds");
    return Status::ok();
  }

  Status gates(std::string &branch, bool isUniform) const {
    const char *field = branch.empty() ? "NSA_FORCE_BRANCH" : "force_branch";
    textOrNone(branch, "NSA_FORCE_BRANCH");
    if (!branch.empty() && branch != "cmp" && branch != "sel" && branch != "win")
      return Status::invalid(field, "'" + branch + "'", "must be cmp, sel, win or none");
    if (isUniform && !branch.empty())
      return Status::invalid("uniform_gate", "1", "excludes force_branch = " + branch,
                             "set one of the two (NSA_UNIFORM_GATE, NSA_FORCE_BRANCH)");
    return Status::ok();
  }

  Status logLimit(int &option) const {
    if (option < kOff)
      return Status::invalid("log_limit", std::to_string(option), "must be -1 (no limit), 0 (the default) or more");
    const std::string_view value = lookup("NSA_LOG_LIMIT");
    if (option != 0 || value.empty())
      return Status::ok();
    if (!parseInteger(value, option) || option < kOff || option == 0)
      return Status::invalid("NSA_LOG_LIMIT", std::string(value), "must be -1 (no limit) or at least 1");
    return Status::ok();
  }

private:
  const EngineOptions::Environment &environment;
};

// The place of the database where neither option nor variable names one. ":memory:": kernels are kept in no file.
std::string defaultCachePath(const Resolver &resolver) {
  // The XDG base directory specification: relative paths are to be ignored.
  if (std::string_view directory = resolver.lookup("XDG_CACHE_HOME"); directory.starts_with('/'))
    return std::string(directory) + "/nsa/kernels.db";
  if (std::string_view home = resolver.lookup("HOME"); !home.empty())
    return std::string(home) + "/.cache/nsa/kernels.db";
  return std::string(kMemory);
}

std::string absolutePath(const std::string &path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string(); // the folder that the process stands in is gone
}

Result<std::string> absoluteList(const char *source, const std::string &list) {
  NSA_ASSIGN_OR_RETURN(std::vector<std::string> paths, splitPaths(source, list));
  std::string result;
  for (const std::string &path : paths) {
    const std::string absolute = absolutePath(path);
    // A list cannot hold a folder with ':' in its name.
    result += (result.empty() ? "" : ":") + (absolute.find(':') == std::string::npos ? absolute : path);
  }
  return result;
}

Result<std::string> absoluteValue(const PathOption &option, const char *source, const std::string &value) {
  const bool isLibraryName = option.kind == PathOption::Kind::kLibrary && value.find('/') == std::string::npos;
  const bool isNone = option.kind == PathOption::Kind::kPacks && value == kNone;
  const bool isMemory = option.kind == PathOption::Kind::kDatabase && value == kMemory;
  if (value.empty() || isLibraryName || isNone || isMemory)
    return value;
  if (option.kind == PathOption::Kind::kFiles || option.kind == PathOption::Kind::kPacks)
    return absoluteList(source, value);
  return absolutePath(value);
}

void logToStderr(LogLevel level, std::string_view tag, std::string_view message) {
  fprintf(stderr, "nsa %s [%.*s] %.*s\n", std::string(logLevelName(level)).c_str(), static_cast<int>(tag.size()),
          tag.data(), static_cast<int>(message.size()), message.data());
}

} // namespace

std::string_view missPolicyName(MissPolicy policy) { return kPolicyNames[static_cast<int>(policy)]; }

Result<MissPolicy> parseMissPolicy(std::string_view field, std::string_view name) {
  for (size_t i = 0; i < std::size(kPolicyNames); ++i)
    if (name == kPolicyNames[i])
      return static_cast<MissPolicy>(i);
  return Status::invalid(std::string(field), "'" + std::string(name) + "'",
                         "must be default, fail, tune or background");
}

std::span<const PathOption> pathOptions() { return kPathOptions; }

std::string EngineOptions::sourceOf(std::string EngineOptions::*path) const {
  for (size_t i = 0; i < pathSources.size(); ++i)
    if (kPathOptions[i].member == path && pathSources[i])
      return pathSources[i];
  return "";
}

Status EngineOptions::resolvePaths(const Environment &environment) {
  const Resolver resolver(environment);
  pathSources.clear();
  for (const PathOption &option : kPathOptions) {
    std::string &path = this->*option.member;
    const char *source = path.empty() ? option.variable : option.field;
    if (option.kind == PathOption::Kind::kPacks || option.kind == PathOption::Kind::kDatabase)
      resolver.text(path, option.variable);
    else
      resolver.textOrNone(path, option.variable);
    if (option.kind == PathOption::Kind::kDatabase && path == kNone)
      path = kMemory;
    else if (option.kind == PathOption::Kind::kDatabase && source == option.variable && !path.empty())
      path += "/kernels.db";
    pathSources.push_back(path.empty() ? nullptr : source);
    NSA_ASSIGN_OR_RETURN(path, absoluteValue(option, source, path));
  }
  if (cachePath.empty())
    cachePath = defaultCachePath(resolver);
  return Status::ok();
}

EngineOptions::Environment EngineOptions::processEnvironment() {
  // The variables name libraries and kernels, which are code. A user who starts a setuid program must not decide what
  // it runs.
  return [](const char *name) -> const char * { return secure_getenv(name); };
}

Status EngineOptions::resolve(const Environment &environment) {
  Resolver resolver(environment);
  resolver.textOrNone(device, "NSA_DEVICE");
  NSA_RETURN_IF_ERROR(resolvePaths(environment));
#define NSA_OPTION_SWITCH(member, name, variable) NSA_RETURN_IF_ERROR(resolver.flag(member, variable));
#include "runtime/model/engine_options.def"
  NSA_RETURN_IF_ERROR(resolver.number(cacheMaxBytes, "cache_max_bytes", "NSA_CACHE_MAX_BYTES", INT64_MAX,
                                      "must be a number of bytes, or 0 for no limit"));
  resolver.text(profilerPath, "NVTX_INJECTION64_PATH");
  variantSource = forceVariant.empty() ? "NSA_FORCE_VARIANT" : "force_variant";
  resolver.textOrNone(forceVariant, "NSA_FORCE_VARIANT");
  resolver.textOrNone(cpuFeatures, "NSA_CPU_FEATURES");

  if (!missPolicy) {
    missPolicy = MissPolicy::kDefault;
    if (std::string_view name = resolver.lookup("NSA_MISS"); !name.empty()) {
      NSA_ASSIGN_OR_RETURN(missPolicy, parseMissPolicy("NSA_MISS", name));
    }
  }
  if (!pinPath.empty() && (missPolicy == MissPolicy::kTune || missPolicy == MissPolicy::kBackground))
    return Status::invalid("miss_policy", std::string(missPolicyName(*missPolicy)),
                           "must be fail or default where pin_path pins the choices",
                           "tune with an engine that has no pin_path (NSA_PIN)");
  if (!fallbacks) {
    fallbacks.emplace();
    if (std::string_view steps = resolver.lookup("NSA_FALLBACKS"); !steps.empty()) {
      NSA_ASSIGN_OR_RETURN(fallbacks, FallbackSteps::parse("NSA_FALLBACKS", steps));
    }
  }
  NSA_RETURN_IF_ERROR(resolver.seconds(tuneBudgetSeconds, "tune_budget_seconds", "NSA_TUNE_BUDGET"));
  NSA_RETURN_IF_ERROR(resolver.number(decodeSplits, "decode_splits", "NSA_DECODE_SPLITS", KeySplits::kMost,
                                      "must be 1 to 16, or 0 for what was measured, else the rule"));
  if (tuneBudgetSeconds == 0)
    tuneBudgetSeconds = tuneExhaustive ? kNoBudgetSeconds : kTuneBudgetSeconds;
  NSA_RETURN_IF_ERROR(resolver.number(cpuThreads, "cpu_threads", "NSA_CPU_THREADS", kMostThreads,
                                      "must be an integer from 0 (all cores) to 4096"));
  NSA_RETURN_IF_ERROR(resolver.number(compileThreads, "compile_threads", "NSA_COMPILE_THREADS", kMostThreads,
                                      "must be an integer from 0 (all cores) to 4096"));
  if (compileThreads == 0)
    compileThreads = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);

  NSA_RETURN_IF_ERROR(resolver.gates(forceBranch, uniformGate));
  NSA_RETURN_IF_ERROR(resolver.logLimit(logLimit));
  if (logLimit == 0)
    logLimit = kLogLimit;

  if (!logLevel) {
    logLevel = LogLevel::kWarning;
    if (std::string_view name = resolver.lookup("NSA_LOG"); !name.empty() && !parseLogLevel(name, *logLevel))
      return Status::invalid("NSA_LOG", std::string(name), "must be debug, info, warning, error or off");
  }
  if (!log)
    log = logToStderr;
  return Status::ok();
}

} // namespace nsa
