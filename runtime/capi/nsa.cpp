// Every function of nsa/nsa.h but the DLPack conversions.
#include "runtime/include/nsa/nsa.h"

#include "runtime/capi/api_structs.h"
#include "runtime/capi/convert.h"
#include "runtime/capi/errors.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/capi/source_id.h" // made by the build
#include "runtime/capi/tune_workload.h"
#include "runtime/engine/engine_handle.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

using namespace nsa;
using namespace nsa::capi;

struct nsa_engine {
  EngineHandle *const handle;
  // A callback that the handle's end waits for still plans with this struct, so the pointer stays until then.
  ~nsa_engine() { delete handle; }
};

// A plan's handle is the plan itself: nsa_plan is a name for the host and never defined.
namespace {

nsa_plan *handleOf(Plan *plan) { return reinterpret_cast<nsa_plan *>(plan); }
Plan *planOf(nsa_plan *handle) { return reinterpret_cast<Plan *>(handle); }
const Plan *planOf(const nsa_plan *handle) { return reinterpret_cast<const Plan *>(handle); }

// A text that the host frees with nsa_free.
Status giveText(const Result<std::string> &text, char **target) {
  if (!text)
    return text.status();
  auto *copy = static_cast<char *>(malloc(text->size() + 1));
  if (!copy)
    return Status::error(ErrorCode::kOutOfMemory, "no memory for " + std::to_string(text->size()) + " bytes of JSON");
  memcpy(copy, text->c_str(), text->size() + 1);
  *target = copy;
  return Status::ok();
}

// The engine of this process.
Result<Engine *> engineOf(const nsa_engine *engine) {
  NSA_RETURN_IF_ERROR(requirePointer(engine, "engine"));
  return engine->handle->engine();
}

// The request of plan, explain and tune.
struct Request {
  Engine *engine;
  Spec spec;
  Maxima maxima;
};

Status readRequest(const nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, Request &request) {
  Result<Engine *> found = engineOf(engine);
  if (!found)
    return found.status();
  request.engine = *found;
  NSA_RETURN_IF_ERROR(convert(spec, request.spec));
  return convert(maxima, request.spec, request.maxima);
}

} // namespace

uint32_t nsa_abi_version(void) noexcept { return NSA_ABI_VERSION; }

const char *nsa_version(void) noexcept { return NSA_VERSION_TEXT; }

const char *nsa_source_id(void) noexcept { return NSA_SOURCE_ID; }

const char *nsa_status_name(nsa_status status) noexcept {
  const int number = numberOf(status);
  if (number < NSA_OK || number > NSA_INTERNAL)
    return "unknown status";
  return errorCodeName(static_cast<ErrorCode>(number)).data(); // a literal, so terminated
}

nsa_status nsa_error_get_info(nsa_error_info *info, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    const ErrorInfo &last = lastFailure();
    nsa_error_info full = nsa_init_sized<nsa_error_info>();
    full.code = static_cast<nsa_status>(last.code);
    full.field = last.field.c_str();
    full.value = last.value.c_str();
    full.rule = last.rule.c_str();
    full.message = last.message.c_str();
    full.hint = last.hint.c_str();
    return giveStruct(full, info, "info");
  });
}

void nsa_spec_init(nsa_spec *spec) noexcept {
  if (!spec)
    return;
  Spec defaults;
  defaults.op = Operator{}; // zero, as all of the struct
  static_assert(sizeof *spec == 128, "the spec may lie in a host with any nsa.h, and its size need not be set");
  *spec = convert(defaults);
}

nsa_tensor *nsa_tensor_rows(nsa_tensor *tensor, void *data, nsa_dtype dtype, int32_t rank,
                            const int64_t *shape) noexcept {
  if (!tensor)
    return nullptr;
  *tensor = nsa_init_sized<nsa_tensor>();
  tensor->data = data;
  tensor->dtype = dtype;
  tensor->rank = shape ? rank : 0;
  int64_t stride = 1;
  for (int axis = std::min(tensor->rank, static_cast<int32_t>(std::size(tensor->shape))); axis-- > 0;) {
    tensor->shape[axis] = shape[axis];
    tensor->strides[axis] = stride;
    if (__builtin_mul_overflow(stride, shape[axis], &stride))
      tensor->rank = axis = 0; // what reads the tensor refuses its rank
  }
  return tensor;
}

nsa_status nsa_engine_create(const nsa_engine_options *options, nsa_engine **engine, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(engine, "engine"));
    *engine = nullptr;
    EngineOptions converted;
    const auto self = std::make_shared<nsa_engine *>(nullptr);
    NSA_RETURN_IF_ERROR(convert(options, self, converted));
    Result<std::unique_ptr<EngineHandle>> opened =
        EngineHandle::open(std::move(converted), EngineOptions::processEnvironment());
    if (!opened)
      return opened.status();
    *engine = *self = new nsa_engine{opened->get()};
    opened->release();
    return Status::ok();
  });
}

void nsa_engine_destroy(nsa_engine *engine) noexcept { delete engine; }

nsa_status nsa_plan_create(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, void *stream,
                           nsa_plan **plan, nsa_error *error) noexcept {
  return nsa_plan_create_with(engine, spec, maxima, nullptr, stream, plan, error);
}

nsa_status nsa_plan_create_with(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                const nsa_plan_options *options, void *stream, nsa_plan **plan,
                                nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    *plan = nullptr;
    Request request;
    NSA_RETURN_IF_ERROR(readRequest(engine, spec, maxima, request));
    bool compares = false;
    if (options)
      NSA_RETURN_IF_ERROR(convert(options, compares));
    Result<PlanPointer> made = compares ? request.engine->planThatCompares(request.spec, request.maxima, stream)
                                        : request.engine->plan(request.spec, request.maxima, stream);
    if (!made)
      return made.status();
    *plan = handleOf(made->release());
    return Status::ok();
  });
}

void nsa_plan_destroy(nsa_plan *plan) noexcept {
  if (plan)
    Plan::giveBack(planOf(plan));
}

nsa_status nsa_plan_workspace_size(const nsa_plan *plan, size_t *bytes, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    NSA_RETURN_IF_ERROR(requirePointer(bytes, "bytes"));
    *bytes = planOf(plan)->workspaceBytes();
    return Status::ok();
  });
}

nsa_status nsa_run(const nsa_plan *plan, const nsa_binding *bindings, size_t bindingCount, void *workspace,
                   size_t workspaceBytes, void *stream, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    Bindings converted;
    NSA_RETURN_IF_ERROR(convert(bindings, bindingCount, converted));
    return planOf(plan)->run(converted, workspace, workspaceBytes, stream);
  });
}

nsa_status nsa_run_timed(const nsa_plan *plan, const nsa_binding *bindings, size_t bindingCount, void *workspace,
                         size_t workspaceBytes, void *stream, nsa_part_time *times, size_t capacity, size_t *count,
                         nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    NSA_RETURN_IF_ERROR(requirePointer(count, "count"));
    if (capacity != 0)
      NSA_RETURN_IF_ERROR(requirePointer(times, "times"));
    *count = 0;
    Bindings converted;
    NSA_RETURN_IF_ERROR(convert(bindings, bindingCount, converted));
    Result<std::vector<Plan::PartTime>> parts = planOf(plan)->runTimed(converted, workspace, workspaceBytes, stream);
    if (!parts)
      return parts.status();
    *count = parts->size();
    for (size_t i = 0; i < std::min(capacity, parts->size()); ++i) {
      const Plan::PartTime &part = (*parts)[i];
      times[i] = {};
      part.name.copy(times[i].name, sizeof times[i].name - 1);
      times[i].launches = part.launches;
      times[i].milliseconds = part.milliseconds;
    }
    return Status::ok();
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

nsa_status nsa_plan_status(nsa_plan *plan, void *stream, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    return planOf(plan)->status(stream);
  });
}

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

nsa_status nsa_explain(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                       nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    Request request;
    NSA_RETURN_IF_ERROR(readRequest(engine, spec, maxima, request));
    return giveText(request.engine->explain(request.spec, request.maxima), json);
  });
}

nsa_status nsa_tune(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                    nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    Request request;
    NSA_RETURN_IF_ERROR(readRequest(engine, spec, maxima, request));
    return giveText(request.engine->tune(request.spec, request.maxima), json);
  });
}

nsa_status nsa_tune_kernel(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, const char *problem,
                           double budgetSeconds, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(json, "json"));
    *json = nullptr;
    NSA_RETURN_IF_ERROR(requirePointer(problem, "problem"));
    Request request;
    NSA_RETURN_IF_ERROR(readRequest(engine, spec, maxima, request));
    return giveText(request.engine->tuneKernel(request.spec, request.maxima, problem, budgetSeconds), json);
  });
}

nsa_status nsa_tune_workload(nsa_engine *engine, const char *workload, const nsa_tune_options *options,
                             nsa_tune_counts *counts, char **json, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    if (json)
      *json = nullptr;
    nsa_tune_counts full = nsa_init_sized<nsa_tune_counts>();
    if (counts)
      NSA_RETURN_IF_ERROR(giveStruct(full, counts, "counts")); // before anything is tuned
    Result<Engine *> found = engineOf(engine);
    if (!found)
      return found.status();
    const Result<std::string> report = tuneWorkload(**found, workload, options, full);
    if (report && counts)
      NSA_RETURN_IF_ERROR(giveStruct(full, counts, "counts"));
    return json ? giveText(report, json) : report.status();
  });
}

nsa_status nsa_engine_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) noexcept {
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

nsa_status nsa_engine_describe(nsa_engine *engine, char **json, nsa_error *error) noexcept {
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
#define NSA_DEVICE_TEXT(field) valueOf(#field).copy(full.field, sizeof full.field - 1);
#define NSA_DEVICE_NUMBER(field) full.field = std::strtoll(valueOf(#field).c_str(), nullptr, 10);
#include "runtime/model/info_fields.def"
    return giveStruct(full, info, "info");
  });
}

void nsa_free(void *text) noexcept { free(text); }
