#include "tools/reference/block_list.h"

namespace nsa::reference {

BlockLists BlockLists::make(int64_t rows, int64_t kvHeads, int64_t slots) {
  return {.kvHeads = kvHeads,
          .slots = slots,
          .blocks = std::vector<int32_t>(static_cast<size_t>(rows * kvHeads * slots), -1)};
}

std::span<int32_t> BlockLists::at(int64_t row, int64_t kvHead) {
  return std::span(blocks).subspan(static_cast<size_t>((row * kvHeads + kvHead) * slots), static_cast<size_t>(slots));
}

std::span<const int32_t> BlockLists::at(int64_t row, int64_t kvHead) const {
  return std::span(blocks).subspan(static_cast<size_t>((row * kvHeads + kvHead) * slots), static_cast<size_t>(slots));
}

BlockLists readBlockLists(std::span<const Sequence> sequences, const BlockListView &view, int64_t kvHeads,
                          int64_t slots) {
  BlockLists lists = BlockLists::make(rowEnd(sequences), kvHeads, slots);
  for (const Sequence &sequence : sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t kvHead = 0; kvHead < kvHeads; ++kvHead)
        for (int64_t slot = 0; slot < slots; ++slot)
          lists.at(sequence.firstRow + query, kvHead)[slot] =
              view.data[sequence.batch * view.batchStride + (sequence.queryBegin + query) * view.timeStride +
                        kvHead * view.headStride + slot * view.slotStride];
  return lists;
}

} // namespace nsa::reference
