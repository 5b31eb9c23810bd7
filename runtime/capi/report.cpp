// The functions of nsa/report.h: what an engine and its plans do, would do and have done.
#include "runtime/capi/handles.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/engine/graph/comparison.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace nsa;
using namespace nsa::capi;

static_assert(NSA_STEP_COMPILED == static_cast<int>(FallbackStep::kCompiled));
static_assert(NSA_WOULD_FAIL == static_cast<int>(Decision::Action::kFail));
static_assert(NSA_AS_ERROR == static_cast<int>(ExplainDescription::Reason::kError));

namespace {

// Sets a field of a struct of the C ABI. A text that is too long is cut.
template <size_t N> void setField(char (&field)[N], const std::string &text) { copyText(field, text); }
template <typename Number, size_t N> void setField(Number (&field)[N], const Number (&numbers)[N]) {
  std::copy_n(numbers, N, field);
}
template <typename Field, typename Value> void setField(Field &field, const Value &value) {
  field = static_cast<Field>(value);
}

} // namespace

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
#define NSA_PLAN_INFO(type, name, place) setField(full.name, found.name);
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
#define NSA_LAUNCH_INFO(type, name, place) setField(launch.name, info.name);
#include "runtime/model/info_fields.def"
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
    NSA_ASSIGN_OR_RETURN(const std::vector<ExplainDescription> found,
                         request.engine->choices(request.spec, request.maxima));
    return list.give(found, [](const ExplainDescription &explain, nsa_choice &choice) {
      const ChoiceInfo info = infoOf(explain);
#define NSA_CHOICE_INFO(type, name, place) setField(choice.name, info.name);
#include "runtime/model/info_fields.def"
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
    NSA_ASSIGN_OR_RETURN(const std::vector<ComparedPart> parts, planOf(plan)->compared());
    return list.give(parts, [](const ComparedPart &info, nsa_comparison &comparison) {
#define NSA_COMPARISON_INFO(type, name, place, isThere) setField(comparison.name, info.name);
#include "runtime/model/info_fields.def"
    });
  });
}

nsa_status nsa_engine_get_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_ASSIGN_OR_RETURN(const Engine *found, engineOf(engine));
    const Counters &counters = found->counters();
    const CacheCounters cache = found->cacheCounters();
    nsa_stats full = nsa_init_sized<nsa_stats>();
#define NSA_STAT_COUNTER(type, member, name) full.name = counters.member;
#define NSA_STAT_FALLBACK(step, name) full.name = counters.fallbacksOf(FallbackStep::step);
#define NSA_STAT_CACHE(member, name) full.name = cache.member;
#include "runtime/model/info_fields.def"
    return giveStruct(full, stats, "stats");
  });
}

nsa_status nsa_engine_describe(const nsa_engine *engine, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    NSA_ASSIGN_OR_RETURN(const Engine *found, engineOf(engine));
    return giveText(found->describe(), json);
  });
}

nsa_status nsa_engine_get_device(const nsa_engine *engine, nsa_device_info *info, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_ASSIGN_OR_RETURN(const Engine *found, engineOf(engine));
    const DeviceFacts facts = found->deviceFacts();
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
