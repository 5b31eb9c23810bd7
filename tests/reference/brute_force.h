// The same operators once more, by an explicit mask over all (query, key) pairs of the whole batch:
// slow and without a single clever index, so that the reference itself can be checked.
// Thread-safety: pure functions.
#pragma once

#include "tests/reference/attention.h"

#include <vector>

namespace nsa::reference {

// mask[query][key] over the rows and keys of all sequences laid end to end.
std::vector<std::vector<bool>> allowedPairs(const Attention &attention);

AttentionResult attendByMask(const Attention &attention);

} // namespace nsa::reference
