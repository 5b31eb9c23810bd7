// Writes a spec as the JSON text that `nsa --config` reads. Writes a spec and maxima as one line of JSON for a plan
// record (plan_record.h) or for a workload's list of plans (docs/tuning.md).
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <string>

namespace nsa {

// Returns {"dtype":"bf16","query_heads":64,...}: the fields that the operator reads and that differ from their
// defaults. configText does not name the operator. Specs that ask for the same computation have the same configText.
std::string configText(const Spec &spec);

// Returns {"op":"decode","batch":2,"seqlen_q":1,"seqlen_k":4096,"config":{...}}, with "tokens_q" where the queries of
// all sequences together are not batch * seqlen_q.
std::string planText(const Spec &spec, const Maxima &maxima);

} // namespace nsa
