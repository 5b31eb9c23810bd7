// Converts the input structs of the C ABI to the engine's values, and back for what a host is told. Sizes, reserved
// fields and the ranges of enumerations are checked here. Every other rule is checked where the value is used.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/call.h"
#include "runtime/engine/options.h"
#include "runtime/include/nsa/nsa.h"

namespace nsa::capi {

Status convert(const nsa_engine_options *options, EngineOptions &result);
Status convert(const nsa_plan_options *options, bool &compares);
Status convert(const nsa_spec *spec, Spec &result);
// max_tokens_q may be 0. It is then max_batch * max_seqlen_q, and in the packed layout at most 2^31 - 1, where `spec`
// says the layout.
Status convert(const nsa_maxima *maxima, const Spec &spec, Maxima &result);
Status convert(const nsa_binding *bindings, size_t count, Bindings &result);

// What a host would have written.
nsa_spec convert(const Spec &spec);
nsa_maxima convert(const Maxima &maxima);

} // namespace nsa::capi
