// Whether a call of decode has left its cache as it must: new rows at their places and nothing else changed.
// Thread-safety: pure functions, which start threads of their own.
#pragma once

#include "tools/support/operator_check.h"

#include <vector>

namespace nsa::tools {

// A verdict for each tensor of the cache, which `outputs` hold as they are after the call. Everything must be bit for
// bit what it was, or the new token; rows of new compressed blocks are compared with phi of their raw tokens in fp64.
std::vector<OutputCheck> checkCache(const OperatorInputs &inputs, const NamedTensors &outputs);

} // namespace nsa::tools
