#include "tools/support/engine.h"

#include "runtime/capi/convert.h"

namespace nsa::tools {

Status toStatus(nsa_status code) {
  if (code == NSA_OK)
    return Status::ok();
  nsa_error_info last = NSA_INIT(nsa_error_info);
  nsa_error_get_info(&last, nullptr);
  return Status(ErrorInfo{.code = static_cast<ErrorCode>(code),
                          .field = last.field,
                          .value = last.value,
                          .rule = last.rule,
                          .message = last.message,
                          .hint = last.hint});
}

namespace {

const char *textOrNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

// Take over a text that the C ABI allocated.
std::string takeText(char *text) {
  std::unique_ptr<char, decltype(&nsa_free)> owner(text, [](void *pointer) noexcept { nsa_free(pointer); });
  return text;
}

nlohmann::json takeJson(char *text) {
  return nlohmann::json::parse(takeText(text), nullptr, /*allow_exceptions=*/false);
}

} // namespace

EngineSettings withNothingStored(EngineSettings settings) {
  settings.cachePath = ":memory:";
  settings.cachePacks = "none";
  settings.pinPath = "none";
  settings.recordPath = "none"; // what is only measured is no workload
  // Of two lengths in one run the second must not be served by the first one's kernel.
  settings.fallbacks = "compiled,cpu";
  return settings;
}

nsa_engine_options EngineSettings::options() const {
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
#define NSA_OPTION_TEXT(member, name) options.name = textOrNull(member);
#define NSA_OPTION_SWITCH(member, name, variable) options.name = member;
#define NSA_OPTION_NUMBER(type, member, name) options.name = member;
#include "runtime/model/engine_options.def"
  options.fallbacks = textOrNull(fallbacks);
  options.miss_policy = missPolicy;
  options.log = log;
  options.log_user = logUser;
  options.log_level = logLevel;
  return options;
}

Result<EngineHandle> createEngine(const EngineSettings &settings) {
  const nsa_engine_options options = settings.options();
  nsa_engine *engine = nullptr;
  NSA_RETURN_IF_ERROR(toStatus(nsa_engine_create(&options, &engine, nullptr)));
  return EngineHandle(engine);
}

Result<PlanHandle> createPlan(nsa_engine *engine, const Spec &spec, const Maxima &maxima, void *stream,
                              const nsa_plan_options *options) {
  const nsa_spec apiSpec = capi::convert(spec);
  const nsa_maxima apiMaxima = capi::convert(maxima);
  nsa_plan *plan = nullptr;
  NSA_RETURN_IF_ERROR(toStatus(nsa_plan_create_with(engine, &apiSpec, &apiMaxima, options, stream, &plan, nullptr)));
  return PlanHandle(plan);
}

Result<size_t> workspaceSize(const nsa_plan *plan) {
  size_t bytes = 0;
  NSA_RETURN_IF_ERROR(toStatus(nsa_plan_workspace_size(plan, &bytes, nullptr)));
  return bytes;
}

nlohmann::json describePlan(const nsa_plan *plan) {
  return nlohmann::json::parse(nsa_plan_describe(plan), nullptr, false);
}

Result<nlohmann::json> describeEngine(nsa_engine *engine) {
  char *text = nullptr;
  NSA_RETURN_IF_ERROR(toStatus(nsa_engine_describe(engine, &text, nullptr)));
  return takeJson(text);
}

Result<std::string> deviceName(nsa_engine *engine) {
  NSA_ASSIGN_OR_RETURN(nlohmann::json description, describeEngine(engine));
  const nlohmann::json &device = description["device"];
  return device.value("kind", "") == "gpu" ? "cuda:" + device.value("ordinal", "0") : std::string("cpu");
}

Result<nlohmann::json> explain(nsa_engine *engine, const Spec &spec, const Maxima &maxima) {
  const nsa_spec apiSpec = capi::convert(spec);
  const nsa_maxima apiMaxima = capi::convert(maxima);
  char *text = nullptr;
  NSA_RETURN_IF_ERROR(toStatus(nsa_explain(engine, &apiSpec, &apiMaxima, &text, nullptr)));
  return takeJson(text);
}

Result<std::string> tuneKernel(nsa_engine *engine, const Spec &spec, const Maxima &maxima, const std::string &problem,
                               double kernelSeconds) {
  const nsa_spec apiSpec = capi::convert(spec);
  const nsa_maxima apiMaxima = capi::convert(maxima);
  nsa_tune_options options = NSA_INIT(nsa_tune_options);
  options.kernel = textOrNull(problem);
  options.kernel_seconds = kernelSeconds;
  char *text = nullptr;
  NSA_RETURN_IF_ERROR(toStatus(nsa_tune_spec(engine, &apiSpec, &apiMaxima, &options, nullptr, &text, nullptr)));
  return takeText(text);
}

Result<nlohmann::json> tune(nsa_engine *engine, const Spec &spec, const Maxima &maxima) {
  NSA_ASSIGN_OR_RETURN(const std::string text, tuneKernel(engine, spec, maxima, "", 0));
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

} // namespace nsa::tools
