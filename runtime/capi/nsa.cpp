// The functions that nsa/nsa.h declares itself.
#include "runtime/include/nsa/nsa.h"

#include "runtime/capi/convert.h"
#include "runtime/capi/handles.h"
#include "runtime/capi/sized_structs.h"
#include "runtime/capi/source_id.h" // made by the build
#include "runtime/engine/call/tensor.h"
#include "runtime/engine/graph/graph.h"

#include <algorithm>
#include <cstdlib>

using namespace nsa;
using namespace nsa::capi;

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

void nsa_spec_init_sized(nsa_spec *spec, size_t bytes) noexcept {
  if (!spec)
    return;
  Spec defaults;
  defaults.op = Operator{}; // zero, as all of the struct
  fillStruct(convert(defaults), spec, bytes);
}

nsa_tensor *nsa_tensor_rows_sized(nsa_tensor *tensor, size_t bytes, void *data, nsa_dtype dtype, int32_t rank,
                                  const int64_t *shape) noexcept {
  if (!tensor)
    return nullptr;
  nsa_tensor rows = nsa_init_sized<nsa_tensor>();
  rows.data = data;
  rows.dtype = dtype;
  rows.rank = shape ? rank : 0;
  const auto axes = static_cast<size_t>(std::clamp(rows.rank, 0, kMaxTensorRank));
  std::copy_n(shape, axes, rows.shape);
  if (!setRowMajorStrides({rows.shape, axes}, {rows.strides, axes}).isOk())
    rows.rank = 0; // what reads the tensor refuses its rank
  fillStruct(rows, tensor, bytes);
  return tensor;
}

nsa_status nsa_engine_create(const nsa_engine_options *options, nsa_engine **engine, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(engine, "engine"));
    *engine = nullptr;
    EngineOptions converted;
    const auto self = std::make_shared<nsa_engine *>(nullptr);
    NSA_RETURN_IF_ERROR(convert(options, self, converted));
    NSA_ASSIGN_OR_RETURN(std::unique_ptr<EngineHandle> opened,
                         EngineHandle::open(std::move(converted), EngineOptions::processEnvironment()));
    *engine = *self = new nsa_engine{opened.get()};
    opened.release();
    return Status::ok();
  });
}

void nsa_engine_destroy(nsa_engine *engine) noexcept { delete engine; }

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

nsa_status nsa_run_timed_sized(const nsa_plan *plan, const nsa_binding *bindings, size_t bindingCount, void *workspace,
                               size_t workspaceBytes, void *stream, nsa_part_time *times, size_t timeBytes,
                               size_t capacity, size_t *count, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    static_assert(kRoles <= NSA_MOST_PARTS);
    const HostList<nsa_part_time> list{times, timeBytes, capacity, count, "times", "time_bytes"};
    NSA_RETURN_IF_ERROR(list.check()); // before anything runs
    Bindings converted;
    NSA_RETURN_IF_ERROR(convert(bindings, bindingCount, converted));
    NSA_ASSIGN_OR_RETURN(const std::vector<Plan::PartTime> parts,
                         planOf(plan)->runTimed(converted, workspace, workspaceBytes, stream));
    return list.give(parts, [](const Plan::PartTime &part, nsa_part_time &time) {
      copyText(time.name, part.name);
      time.launches = part.launches;
      time.milliseconds = part.milliseconds;
    });
  });
}

nsa_status nsa_plan_status(const nsa_plan *plan, void *stream, nsa_error *error) noexcept {
  return guarded(error, [&]() -> Status {
    NSA_RETURN_IF_ERROR(requirePointer(plan, "plan"));
    return planOf(plan)->status(stream);
  });
}

void nsa_free(void *text) noexcept { free(text); }
