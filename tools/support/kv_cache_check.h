// Checks whether a call of decode changed its cache correctly: the rows of the new tokens are written, and nothing else
// has changed.
// Thread-safety: the checks are pure functions, which start threads of their own.
#pragma once

#include "tools/support/operator_check.h"

#include <vector>

namespace nsa::tools {

// Returns a verdict for each tensor of the cache. `outputs` has the tensors as they are after the call. Every bit of
// the cache must be the same as before the call, or belong to the row of a new token and be the bit of that token. The
// rows of new compressed blocks are compared with the compression phi of their tokens, computed in fp64.
std::vector<OutputCheck> checkCache(const OperatorInputs &inputs, const NamedTensors &outputs);

} // namespace nsa::tools
