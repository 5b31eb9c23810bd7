// Makes the structs of the C ABI of a spec and of maxima.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/include/nsa/nsa.h"

namespace nsa::capi {

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
