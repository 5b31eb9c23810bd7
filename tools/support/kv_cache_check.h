// Checks whether a call of decode left its cache as it must: new rows are at their places, and nothing else has
// changed.
// Thread-safety: the checks are pure functions, which start threads of their own.
#pragma once

#include "tools/support/operator_check.h"

#include <vector>

namespace nsa::tools {

// Returns a verdict for each tensor of the cache. `outputs` has the tensors as they are after the call. Every bit of
// the cache must be what it was before the call, or the bit of the new token. Rows of new compressed blocks are
// compared with phi of their tokens in fp64.
std::vector<OutputCheck> checkCache(const OperatorInputs &inputs, const NamedTensors &outputs);

} // namespace nsa::tools
