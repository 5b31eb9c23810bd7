#include "tools/reference/block_list.h"

#include <algorithm>
#include <functional>

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

std::vector<std::vector<int32_t>> invertLists(const BlockLists &lists, const Sequence &sequence, int64_t kvHead,
                                              int64_t selBlock) {
  const int64_t blocks = (sequence.keys + selBlock - 1) / selBlock;
  std::vector<std::vector<int32_t>> queries(static_cast<size_t>(blocks));
  for (int64_t query = 0; query < sequence.queries; ++query) {
    const std::span<const int32_t> list = lists.at(sequence.firstRow + query, kvHead);
    const auto past = std::ranges::find(list, -1);
    const bool isAscending = std::adjacent_find(list.begin(), past, std::greater_equal()) == past;
    const bool isInRange = std::all_of(list.begin(), past, [&](int32_t block) { return block >= 0 && block < blocks; });
    const bool isOver = std::all_of(past, list.end(), [](int32_t block) { return block == -1; });
    if (isAscending && isInRange && isOver)
      for (const int32_t block : std::span(list.begin(), past))
        if (block * selBlock <= sequence.position(query))
          queries[static_cast<size_t>(block)].push_back(static_cast<int32_t>(query));
  }
  return queries;
}

} // namespace nsa::reference
