// Converts the input structs of the C ABI to the engine's values, and the engine's values back. `convert` checks the
// sizes of structs, reserved fields and the ranges of enumerations. The functions of the engine that use the values
// check all rules that `convert` does not check. Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/call/call.h"
#include "runtime/engine/options/options.h"
#include "runtime/include/nsa/nsa.h"

#include <memory>

namespace nsa::capi {

// nsa_tuned_callback receives the engine's handle from `*self`. The caller must store the handle in `*self` before it
// gives the handle to the host. Before the host has the handle, the engine does not call nsa_tuned_callback, because
// only a plan of the host can start a tuning.
Status convert(const nsa_engine_options *options, std::shared_ptr<nsa_engine *> self, EngineOptions &result);
Status convert(const nsa_plan_options *options, bool &compares);
Status convert(const nsa_spec *spec, Spec &result);
// A max_tokens_q of 0 becomes max_batch * max_seqlen_q, and in the packed layout at most 2^31 - 1. `spec` says whether
// calls of the plan have the packed layout.
Status convert(const nsa_maxima *maxima, const Spec &spec, Maxima &result);
Status convert(const nsa_binding *bindings, size_t count, Bindings &result);
// `name` is what an error calls the tensor.
Status convert(std::string_view name, const nsa_tensor *given, Tensor &result);

// Make the structs of the C ABI of a spec and of maxima.
inline nsa_spec convert(const Spec &spec) {
  nsa_spec result = nsa_init_sized<nsa_spec>();
  result.op = static_cast<nsa_op>(definitionOf(spec.op).abi);
#define NSA_SPEC_FIELD(type, member, name, ...) result.name = static_cast<decltype(result.name)>(spec.member);
#include "runtime/model/spec_fields.def"
  return result;
}

inline nsa_maxima convert(const Maxima &maxima) {
  nsa_maxima result = nsa_init_sized<nsa_maxima>();
  result.max_batch = maxima.batch;
  result.max_tokens_q = maxima.tokensQ;
  result.max_seqlen_q = maxima.seqlenQ;
  result.max_seqlen_k = maxima.seqlenK;
  return result;
}

} // namespace nsa::capi
