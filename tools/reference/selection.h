// Importance and selection (docs/specification.md 5): from queries and given compressed keys to lists of selection
// blocks. Ownership: views borrow. Thread-safety: pure functions; `select` starts its own threads.
#pragma once

#include "tools/reference/block_list.h"
#include "tools/reference/sequence.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nsa::reference {

struct Selection {
  Spec spec{};
  TensorView q{};     // q_cmp
  TensorView kComp{}; // rounded
  std::vector<Sequence> sequences{};
};

// score[j] of the selection blocks 0 .. b (the query's own), summed over the group's heads.
std::vector<double> blockScores(const Selection &selection, const Sequence &sequence, int64_t query, int64_t kvHead);

// Chosen whatever its score; `own` is b.
bool isForced(const Spec &spec, int64_t block, int64_t own);

// The total order among unforced blocks: does `block` go before `other`?
bool ranksBefore(std::span<const double> scores, int64_t block, int64_t other);

// The list for scores of blocks 0 .. b, ascending: min(n, b + 1) blocks.
std::vector<int32_t> chooseBlocks(std::span<const double> scores, const Spec &spec);

// threads = 0: one per core. Lists have sel_count slots.
BlockLists select(const Selection &selection, int threads = 0);

} // namespace nsa::reference
