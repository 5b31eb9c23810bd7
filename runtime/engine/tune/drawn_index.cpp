#include "runtime/engine/tune/drawn_index.h"

#include <algorithm>
#include <numeric>

namespace nsa {

DrawnIndex::DrawnIndex(const Spec &spec, const Lengths &lengths, std::span<const int32_t> lists, int64_t item) {
  const bool packed = spec.layout == Layout::kPacked;
  const int64_t heads = spec.kvHeads, count = spec.selCount, block = spec.selBlock;
  const auto batch = static_cast<int64_t>(lengths.q.size());
  const auto blocksOf = [&](int64_t sequence) { return (lengths.k[sequence] + block - 1) / block; };
  const int64_t totalQ = std::reduce(lengths.q.begin(), lengths.q.end());
  const int64_t totalK = std::reduce(lengths.k.begin(), lengths.k.end());
  places = packed ? totalK / block + 2 * batch + totalQ * count : blocksOf(0) + 1 + lengths.q[0] * count;
  index.assign(static_cast<size_t>((packed ? 1 : batch) * heads * places), 0);
  entrySlots.assign(index.size(), 0);
  for (int64_t sequence = 0; sequence < batch; ++sequence)
    mostBlocks = std::max(mostBlocks, blocksOf(sequence));
  ranges.assign(static_cast<size_t>(2 * batch * heads * mostBlocks), 0);
  written.assign(static_cast<size_t>((totalK / block + totalQ * count / item + 2 * batch) * block * heads), false);

  int64_t queryBegin = 0, keyBegin = 0;
  for (int64_t sequence = 0; sequence < batch; ++sequence) {
    const int64_t queries = lengths.q[sequence], keys = lengths.k[sequence], blocks = blocksOf(sequence);
    const int64_t firstPiece = keyBegin / block + queryBegin * count / item + 2 * sequence;
    for (int64_t head = 0; head < heads; ++head) {
      std::vector<std::vector<int32_t>> listing(static_cast<size_t>(blocks)), slots(static_cast<size_t>(blocks));
      for (int64_t query = 0; query < queries; ++query)
        for (int64_t slot = 0; slot < count; ++slot)
          if (const int32_t named = lists[((queryBegin + query) * heads + head) * count + slot]; named >= 0) {
            listing[static_cast<size_t>(named)].push_back(static_cast<int32_t>(query));
            slots[static_cast<size_t>(named)].push_back(static_cast<int32_t>(slot));
          }
      const int64_t origin = packed ? head * places + keyBegin / block + 2 * sequence + queryBegin * count
                                    : (sequence * heads + head) * places;
      int64_t offset = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const std::vector<int32_t> &own = listing[static_cast<size_t>(b)];
        index[origin + b] = static_cast<int32_t>(offset);
        std::ranges::copy(own, index.begin() + origin + blocks + 1 + offset);
        std::ranges::copy(slots[static_cast<size_t>(b)], entrySlots.begin() + origin + blocks + 1 + offset);
        const auto past = offset + static_cast<int64_t>(own.size());
        ranges[(sequence * heads + head) * mostBlocks + b] = static_cast<int32_t>(offset);
        ranges[((batch + sequence) * heads + head) * mostBlocks + b] = static_cast<int32_t>(past);
        for (int64_t begin = offset; begin < past; begin = (begin / item + 1) * item)
          for (int64_t key = 0; key < std::min(block, keys - b * block); ++key)
            written[((firstPiece + b + begin / item) * block + key) * heads + head] = true;
        offset = past;
      }
      index[origin + blocks] = static_cast<int32_t>(offset);
    }
    queryBegin += queries;
    keyBegin += keys;
  }
  for (int64_t list = 0; list < totalQ * heads; ++list)
    listLengths.push_back(static_cast<int32_t>(
        std::ranges::count_if(lists.subspan(list * count, count), [](int32_t named) { return named >= 0; })));
}

} // namespace nsa
