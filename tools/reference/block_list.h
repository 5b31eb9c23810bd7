// Lists of selection blocks: n ascending numbers for each query and kv head, -1 behind the last one
// (docs/specification.md 2). Ownership: BlockLists owns, BlockListView borrows. Thread-safety: values and pure
// functions.
#pragma once

#include "tools/reference/sequence.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nsa::reference {

// Addressed by (batch, time, kv head, slot); all strides are free.
struct BlockListView {
  const int32_t *data = nullptr;
  int64_t batchStride = 0; // elements
  int64_t timeStride = 0;
  int64_t headStride = 0;
  int64_t slotStride = 0;

  bool isGiven() const { return data != nullptr; }
};

struct BlockLists {
  int64_t kvHeads = 0;
  int64_t slots = 0;
  std::vector<int32_t> blocks{}; // [rows, kvHeads, slots]

  // All slots are -1.
  static BlockLists make(int64_t rows, int64_t kvHeads, int64_t slots);
  std::span<int32_t> at(int64_t row, int64_t kvHead);
  std::span<const int32_t> at(int64_t row, int64_t kvHead) const;
};

// The lists of all queries of the sequences, by row.
BlockLists readBlockLists(std::span<const Sequence> sequences, const BlockListView &view, int64_t kvHeads,
                          int64_t slots);

// The inverse of the lists of one sequence and kv head: for each block, in ascending order, the queries that list the
// block and see a key of it. A list that breaks the rule of docs/specification.md 2 counts as empty.
std::vector<std::vector<int32_t>> invertLists(const BlockLists &lists, const Sequence &sequence, int64_t kvHead,
                                              int64_t selBlock);

} // namespace nsa::reference
