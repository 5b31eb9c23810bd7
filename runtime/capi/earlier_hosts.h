// The functions that nsa.h of 0.1 and 0.2 declares and that later headers have under another name or with more
// arguments. Hosts that were compiled with those headers, and linked with this library, call them. docs/embedding.md
// lists the functions that took their place.
// Thread-safety: as the functions in whose place they stand.
#pragma once

#include "runtime/include/nsa/nsa.h"

#undef nsa_run_timed
#undef nsa_spec_init
#undef nsa_tensor_from_dlpack

// NOLINTBEGIN(readability-identifier-naming): names of the C ABI
extern "C" {

// Fill the structs that those headers have.
NSA_API void nsa_spec_init(nsa_spec *spec) NSA_NOEXCEPT;
NSA_API nsa_status nsa_tensor_from_dlpack(const void *dl_tensor, nsa_tensor *tensor, nsa_error *error) NSA_NOEXCEPT;
NSA_API nsa_status nsa_run_timed(const nsa_plan *plan, const nsa_binding *bindings, size_t binding_count,
                                 void *workspace, size_t workspace_bytes, void *stream, nsa_part_time *times,
                                 size_t capacity, size_t *count, nsa_error *error) NSA_NOEXCEPT;

NSA_API nsa_status nsa_plan_create(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, void *stream,
                                   nsa_plan **plan, nsa_error *error) NSA_NOEXCEPT;
NSA_API nsa_status nsa_engine_stats(const nsa_engine *engine, nsa_stats *stats, nsa_error *error) NSA_NOEXCEPT;
NSA_API nsa_status nsa_tune(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima, char **json,
                            nsa_error *error) NSA_NOEXCEPT;
NSA_API nsa_status nsa_tune_kernel(nsa_engine *engine, const nsa_spec *spec, const nsa_maxima *maxima,
                                   const char *problem, double budget_seconds, char **json,
                                   nsa_error *error) NSA_NOEXCEPT;

} // extern "C"
// NOLINTEND(readability-identifier-naming)
