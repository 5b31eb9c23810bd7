// The functions of nsa/report.h: what an engine and its plans do, would do and have done.
#include "runtime/capi/handles.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/engine/graph/comparison.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

using namespace nsa;
using namespace nsa::capi;

static_assert(NSA_STEP_COMPILED == static_cast<int>(FallbackStep::kCompiled));
static_assert(NSA_WOULD_FAIL == static_cast<int>(Decision::Action::kFail));
static_assert(NSA_AS_ERROR == static_cast<int>(ExplainDescription::Reason::kError));

const char *nsa_plan_describe(const nsa_plan *plan) noexcept {
  try {
    return plan ? planOf(plan)->describe().c_str() : "";
  } catch (...) {
    return ""; // no memory for the text
  }
}

nsa_status nsa_plan_get_info(const nsa_plan *plan, nsa_plan_info *info, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    const PlanInfo found = planOf(plan)->info();
    nsa_plan_info full = nsa_init_sized<nsa_plan_info>();
#define NSA_PLAN_INFO(type, name, place) full.name = static_cast<decltype(full.name)>(found.name);
#include "runtime/model/info_fields.def"
    return giveStruct(full, info, "info");
  });
}

nsa_status nsa_plan_launches_sized(const nsa_plan *plan, nsa_launch *launches, size_t launchBytes, size_t capacity,
                                   size_t *count, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    const HostList<nsa_launch> list{launches, launchBytes, capacity, count, "launches", "launch_bytes"};
    NSA_RETURN_IF_ERROR(list.check());
    return list.give(planOf(plan)->launches(), [](const LaunchInfo &info, nsa_launch &launch) {
      copyText(launch.operator_name, info.op);
      copyText(launch.template_name, info.templateName);
      copyText(launch.config, info.config);
      copyText(launch.problem, info.problem);
      copyText(launch.content, info.content);
      copyText(launch.target, info.target);
      copyText(launch.served_by, info.servedBy);
      launch.source = static_cast<nsa_source>(info.source);
      launch.step = static_cast<nsa_step>(info.step);
      launch.tuned = info.tuned;
      std::copy(std::begin(info.grid), std::end(info.grid), launch.grid);
      launch.threads = info.threads;
      launch.shared_bytes = info.sharedBytes;
      launch.scratch_bytes = info.scratchBytes;
    });
  });
}

nsa_status nsa_explain_choices_sized(const nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                     nsa_choice *choices, size_t choiceBytes, size_t capacity, size_t *count,
                                     nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    const HostList<nsa_choice> list{choices, choiceBytes, capacity, count, "choices", "choice_bytes"};
    NSA_RETURN_IF_ERROR(list.check());
    Request request;
    NSA_RETURN_IF_ERROR(readRequest(engine, spec, maxima, request));
    Result<std::vector<ExplainDescription>> found = request.engine->choices(request.spec, request.maxima);
    if (!found)
      return found.status();
    return list.give(*found, [](const ExplainDescription &explain, nsa_choice &choice) {
      const Decision &decision = explain.decision;
      copyText(choice.part, explain.route.part);
      copyText(choice.problem, explain.problem);
      choice.action = static_cast<nsa_action>(decision.action);
      choice.reason = static_cast<nsa_reason>(explain.reason());
      choice.in_memory = explain.inMemory;
      choice.tunes_in_background = explain.tunesInBackground();
      if (explain.fails())
        choice.status =
            static_cast<nsa_status>(decision.failure.isOk() ? ErrorCode::kCacheMiss : decision.failure.code());
      if (!explain.isChosen())
        return;
      copyText(choice.template_name, explain.templateName());
      copyText(choice.config, explain.config());
      choice.source = static_cast<nsa_source>(explain.source());
      choice.step = static_cast<nsa_step>(decision.step);
      choice.tuned = decision.tuned;
    });
  });
}

nsa_status nsa_explain(const nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                       nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    Request request;
    NSA_RETURN_IF_ERROR(readRequest(engine, spec, maxima, request));
    return giveText(request.engine->explain(request.spec, request.maxima), json);
  });
}

nsa_status nsa_plan_compare_report(const nsa_plan *plan, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    return giveText(planOf(plan)->comparisonReport(), json);
  });
}

nsa_status nsa_plan_comparisons_sized(const nsa_plan *plan, nsa_comparison *comparisons, size_t comparisonBytes,
                                      size_t capacity, size_t *count, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    const HostList<nsa_comparison> list{comparisons, comparisonBytes, capacity,
                                        count,       "comparisons",   "comparison_bytes"};
    NSA_RETURN_IF_ERROR(list.check());
    Result<std::vector<ComparedPart>> parts = planOf(plan)->compared();
    if (!parts)
      return parts.status();
    return list.give(*parts, [](const ComparedPart &part, nsa_comparison &comparison) {
      copyText(comparison.part, part.part);
      copyText(comparison.operator_name, part.op);
      copyText(comparison.template_name, part.templateName);
      copyText(comparison.config, part.config);
      copyText(comparison.definition_template, part.definitionTemplate);
      copyText(comparison.definition_config, part.definitionConfig);
      comparison.compared = part.isCompared;
      comparison.same_kernel = part.isSameKernel;
      comparison.lists = part.lists;
      comparison.different_lists = part.differentLists;
      comparison.elements = part.elements;
      comparison.max_abs = part.maxAbs;
      comparison.mean_abs = part.meanAbs;
      comparison.relative_rms = part.relativeRms;
      comparison.unequal_nan = part.unequalNan;
      comparison.unequal_inf = part.unequalInf;
    });
  });
}

nsa_status nsa_engine_get_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    Result<Engine *> found = engineOf(engine);
    if (!found)
      return found.status();
    const Counters &counters = (*found)->counters();
    const CacheCounters cache = (*found)->cacheCounters();
    nsa_stats full = nsa_init_sized<nsa_stats>();
    full.plans_from_memory = counters.plansFromMemory;
    full.plans_from_database = counters.plansFromDatabase;
    full.plans_compiled = counters.plansCompiled;
    full.plans_failed = counters.plansFailed;
    full.kernels_compiled = counters.kernelsCompiled;
    full.kernels_measured = counters.kernelsMeasured;
    full.kernels_rejected = counters.kernelsRejected;
    full.kernels_loaded = counters.kernelsLoaded;
    full.cache_damaged_rows = cache.damagedRows;
    full.cache_failed_writes = cache.failedWrites;
    full.cache_pack_hits = cache.packHits;
    full.cache_refused_packs = cache.refusedPacks;
    full.runs = counters.runs;
    full.fallback_nearest = counters.fallbacksOf(FallbackStep::kNearest);
    full.fallback_model = counters.fallbacksOf(FallbackStep::kModel);
    full.fallback_architecture = counters.fallbacksOf(FallbackStep::kArchitecture);
    full.fallback_compiled = counters.fallbacksOf(FallbackStep::kCompiled);
    full.fallback_cpu = counters.fallbacksOf(FallbackStep::kCpu);
    full.background_pending = counters.backgroundPending;
    full.background_done = counters.backgroundDone;
    full.background_failed = counters.backgroundFailed;
    full.log_dropped = counters.logDropped;
    full.lookup_ms = counters.lookupMs;
    full.render_ms = counters.renderMs;
    full.compile_ms = counters.compileMs;
    full.tune_ms = counters.tuneMs;
    full.load_ms = counters.loadMs;
    return giveStruct(full, stats, "stats");
  });
}

nsa_status nsa_engine_describe(const nsa_engine *engine, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    Result<Engine *> found = engineOf(engine);
    return found ? giveText((*found)->describe(), json) : found.status();
  });
}

nsa_status nsa_engine_get_device(const nsa_engine *engine, nsa_device_info *info, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    Result<Engine *> found = engineOf(engine);
    if (!found)
      return found.status();
    const DeviceFacts facts = (*found)->deviceFacts();
    const auto valueOf = [&](std::string_view name) -> std::string {
      for (const auto &[fact, value] : facts)
        if (fact == name)
          return value;
      return "";
    };
    nsa_device_info full = nsa_init_sized<nsa_device_info>();
#define NSA_DEVICE_TEXT(field) copyText(full.field, valueOf(#field));
#define NSA_DEVICE_NUMBER(field) full.field = std::strtoll(valueOf(#field).c_str(), nullptr, 10);
#include "runtime/model/info_fields.def"
    return giveStruct(full, info, "info");
  });
}
