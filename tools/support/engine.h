// A C++ interface to the functions of the C ABI that tools and tests need. Errors are Status values, and handles free
// their objects.
// Thread-safety: as the C ABI.
#pragma once

#include "nsa/nsa.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

// Returns the status of a call that this thread has just made.
Status toStatus(nsa_status code);

// The options of an engine (nsa_engine_options), with strings where the C ABI has pointers to texts. A setting whose
// text is empty has its default.
struct EngineSettings {
  std::string device = "cpu";
  std::string cachePath, cachePacks, cacheKeys;
  bool requireSignature = false;
  int64_t cacheMaxBytes = 0;
  nsa_miss_policy missPolicy = NSA_MISS_UNSET;
  double tuneBudgetSeconds = 0;
  bool tuneExhaustive = false, ignoreThresholds = false;
  int32_t decodeSplits = 0;
  std::string compilerPath, nvrtcPath, templateDir, forceVariant, dumpDir, cpuFeatures, fallbacks, pinPath, recordPath,
      forceBranch;
  int32_t uniformGate = 0;
  int32_t cpuThreads = 0;
  int32_t compileThreads = 0;
  nsa_log_callback log = nullptr;
  void *logUser = nullptr;
  nsa_log_level logLevel = NSA_LOG_UNSET;
};

// Returns the settings for an engine without stored kernels. The returned settings override the environment variables
// that name a database, packs or fallbacks. An engine without stored kernels is used to measure what the compiler and
// the tuner themselves produce.
EngineSettings withNothingStored(EngineSettings settings);

struct EngineDeleter {
  void operator()(nsa_engine *engine) const { nsa_engine_destroy(engine); }
};
using EngineHandle = std::unique_ptr<nsa_engine, EngineDeleter>;

struct PlanDeleter {
  void operator()(nsa_plan *plan) const { nsa_plan_destroy(plan); }
};
using PlanHandle = std::unique_ptr<nsa_plan, PlanDeleter>;

Result<EngineHandle> createEngine(const EngineSettings &options);
Result<PlanHandle> createPlan(nsa_engine *engine, const Spec &spec, const Maxima &maxima, void *stream = nullptr);
Result<size_t> workspaceSize(const nsa_plan *plan);
nlohmann::json describePlan(const nsa_plan *plan);
Result<nlohmann::json> describeEngine(nsa_engine *engine);
// The engine's device: "cpu" or "cuda:N".
Result<std::string> deviceName(nsa_engine *engine);
Result<nlohmann::json> explain(nsa_engine *engine, const Spec &spec, const Maxima &maxima);
Result<nlohmann::json> tune(nsa_engine *engine, const Spec &spec, const Maxima &maxima);
// Tunes one kernel of the spec, named by its problem key, and returns the report as a text.
Result<std::string> tuneKernel(nsa_engine *engine, const Spec &spec, const Maxima &maxima, const std::string &problem,
                               double kernelSeconds);

} // namespace nsa::tools
