#include "runtime/capi/earlier_hosts.h"

#include "runtime/capi/earlier_structs.h"
#include "runtime/capi/errors.h"

using namespace nsa;
using namespace nsa::capi;

void nsa_spec_init(nsa_spec *spec) noexcept { nsa_spec_init_sized(spec, kSpecBytesOf02); }

nsa_status nsa_tensor_from_dlpack(const void *dlTensor, nsa_tensor *tensor, nsa_error *error) noexcept {
  return nsa_tensor_from_dlpack_sized(dlTensor, tensor, kTensorBytesOf02, error);
}

nsa_status nsa_run_timed(const nsa_plan *plan, const nsa_binding *bindings, size_t bindingCount, void *workspace,
                         size_t workspaceBytes, void *stream, nsa_part_time *times, size_t capacity, size_t *count,
                         nsa_error *error) noexcept {
  return nsa_run_timed_sized(plan, bindings, bindingCount, workspace, workspaceBytes, stream, times, kPartTimeBytesOf02,
                             capacity, count, error);
}

nsa_status nsa_plan_create(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, void *stream,
                           nsa_plan **plan, nsa_error *error) noexcept {
  return nsa_plan_create_with(engine, spec, maxima, nullptr, stream, plan, error);
}

nsa_status nsa_engine_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) noexcept {
  return nsa_engine_get_stats(engine, stats, error);
}

nsa_status nsa_tune(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                    nsa_error *error) noexcept {
  if (!json)
    return guarded(error, [&] { return requirePointer(json, "json"); });
  return nsa_tune_spec(engine, spec, maxima, nullptr, nullptr, json, error);
}

nsa_status nsa_tune_kernel(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, const char *problem,
                           double budgetSeconds, char **json, nsa_error *error) noexcept {
  if (!json || !problem)
    return guarded(error, [&] { return requirePointer(nullptr, json ? "problem" : "json"); });
  nsa_tune_options options = nsa_init_sized<nsa_tune_options>();
  options.kernel = problem;
  options.kernel_seconds = budgetSeconds;
  return nsa_tune_spec(engine, spec, maxima, &options, nullptr, json, error);
}
