// What kernels of the gradients of `sel` take besides lists of blocks, for the lists that the tuner draws: the number
// of blocks of each list, the inverse of the lists with the places of its entries, and the rows that the pieces of the
// inverse write. Plans let kernels make all but the rows (docs/operators.md).
// Thread-safety: values and pure functions.
#pragma once

#include "runtime/base/problem.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nsa {

struct DrawnIndex {
  // The queries and keys of each sequence.
  struct Lengths {
    std::span<const int64_t> q, k;
  };
  // `lists` has well-formed lists, [all queries, kv_heads, sel_count]; `item` is itemQueries of the plan.
  DrawnIndex(const Spec &spec, const Lengths &lengths, std::span<const int32_t> lists, int64_t item);

  std::vector<int32_t> listLengths; // [all queries, kv_heads]
  std::vector<int32_t> index;       // block_index: [batch or 1, kv_heads, places]
  int64_t places = 0;
  std::vector<int32_t> entrySlots; // of each entry of `index`, the place of the block in the query's list
  std::vector<int32_t> ranges;     // index_ranges of a launch of all queries: [2, batch, kv_heads, most blocks]
  int64_t mostBlocks = 0;          // of a sequence
  std::vector<bool> written;       // [rows of pieces, kv_heads]: whether a piece has the row
};

} // namespace nsa
