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
// text is empty, or whose number is 0, has its default. A switch is NSA_ON, NSA_OFF or 0.
struct EngineSettings {
#define NSA_OPTION_TEXT(member, name) std::string member;
#define NSA_OPTION_SWITCH(member, name, variable) int32_t member = 0;
#define NSA_OPTION_NUMBER(type, member, name) type member = 0;
#include "runtime/model/engine_options.def"
  std::string fallbacks;
  nsa_miss_policy missPolicy = NSA_MISS_UNSET;
  nsa_log_callback log = nullptr;
  void *logUser = nullptr;
  nsa_log_level logLevel = NSA_LOG_UNSET;

  EngineSettings() { device = "cpu"; }
  // Returns the options for the C ABI, which borrow the texts of these settings.
  nsa_engine_options options() const;
};

// Returns the settings for an engine without stored kernels. The returned settings override the environment variables
// that name a database, packs or fallbacks. An engine without stored kernels is used to measure what the compiler and
// the tuner themselves produce.
EngineSettings withNothingStored(EngineSettings settings);

template <auto destroy> struct Destroyer {
  void operator()(auto *handle) const { destroy(handle); }
};
using EngineHandle = std::unique_ptr<nsa_engine, Destroyer<nsa_engine_destroy>>;
using PlanHandle = std::unique_ptr<nsa_plan, Destroyer<nsa_plan_destroy>>;

Result<EngineHandle> createEngine(const EngineSettings &settings);
Result<PlanHandle> createPlan(nsa_engine *engine, const Spec &spec, const Maxima &maxima, void *stream = nullptr,
                              const nsa_plan_options *options = nullptr);
Result<size_t> workspaceSize(const nsa_plan *plan);
nlohmann::json describePlan(const nsa_plan *plan);
Result<nlohmann::json> describeEngine(nsa_engine *engine);
// The engine's device: "cpu" or "cuda:N".
Result<std::string> deviceName(nsa_engine *engine);
Result<nlohmann::json> explain(nsa_engine *engine, const Spec &spec, const Maxima &maxima);
Result<nlohmann::json> tune(nsa_engine *engine, const Spec &spec, const Maxima &maxima);
// Tunes one kernel of the spec, named by its problem key, or all kernels if `problem` is empty, and returns the report
// as a text. A kernel takes at most `kernelSeconds`; 0: as the engine is set.
Result<std::string> tuneKernel(nsa_engine *engine, const Spec &spec, const Maxima &maxima, const std::string &problem,
                               double kernelSeconds);

} // namespace nsa::tools
