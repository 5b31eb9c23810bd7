// Checks whether a call of decode changed its cache correctly: the rows of the new tokens are written, and nothing else
// has changed.
// Thread-safety: checkCache is a pure function, and starts worker threads of its own.
#pragma once

#include "tools/support/operator_check.h"

#include <vector>

namespace nsa::tools {

// Returns a verdict for each tensor of the cache. `outputs` has the tensors as they are after the call. The row of each
// new token must be an exact copy of the token's key or value. The row of each new compressed block is compared with
// the compression phi of the block's tokens, computed in fp64. All other bytes of the cache must be the same as before
// the call.
std::vector<OutputCheck> checkCache(const OperatorInputs &inputs, const NamedTensors &outputs);

} // namespace nsa::tools
