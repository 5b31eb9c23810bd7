// The same operators once more, by explicit masks over all pairs of the whole batch: slow and without a single clever
// index, so that the reference itself can be checked. It shares nothing with the reference but the argument types.
// Sums are in long double and without a maximum subtracted: inputs of the check are small enough for exp.
// Thread-safety: pure functions.
#pragma once

#include "tools/reference/nsa.h"
#include "tools/reference/rotation.h"

#include <cstdint>
#include <vector>

namespace nsa::reference {

// mask[query][key] over the rows and keys (cmp: compressed blocks) of all sequences laid end to end.
std::vector<std::vector<bool>> allowedPairs(const Attention &attention, int64_t kvHead);

AttentionResult attendByMask(const Attention &attention);

Compressed compressByMask(const Compression &compression);

// scores[query][block] of all queries laid end to end and all selection blocks of the longest sequence; those that the
// query may not choose are there too.
std::vector<std::vector<double>> blockScoresByMask(const Selection &selection, int64_t kvHead);

// Chooses one block at a time, each time the best of all that are left.
BlockLists selectByMask(const Selection &selection);

std::vector<double> combineByMask(const Combination &combination);

// Each row times the matrix of its position, qk_dim by qk_dim.
std::vector<double> rotateByMatrix(const Rotation &rotation);

// Of whole batches: `rows` is not for it.
NsaResult forwardByMask(const Nsa &nsa);

} // namespace nsa::reference
