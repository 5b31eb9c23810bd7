// From the C ABI's input structs to the engine's values. Sizes, reserved fields and ranges of enumerations are checked
// here; every other rule where the value is used.
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
// The spec's layout says how far a left out max_tokens_q may reach.
Status convert(const nsa_maxima *maxima, const Spec &spec, Maxima &result);
Status convert(const nsa_binding *bindings, size_t count, Bindings &result);

} // namespace nsa::capi
