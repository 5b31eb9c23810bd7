#include "tools/reference/key_values.h"

#include <span>

namespace nsa::reference {

KeyValues::KeyValues(const Attention &a, const Sequence &sequence, int64_t kvHead)
    : qkDim(a.spec.qkDim), vDim(a.spec.vDim) {
  const bool compressed = definitionOf(a.spec.op).keys == MetKeys::kBlocks;
  const int64_t keys = compressed ? a.spec.compressedBlocks(sequence.keys) : sequence.keys;
  const int64_t begin = compressed ? sequence.blockBegin : sequence.keyBegin;
  // How many more ranges begin at a key than ended before it; summed up, how many ranges hold it.
  std::vector<int64_t> steps(static_cast<size_t>(keys) + 1, 0);
  for (int64_t query = 0; query < sequence.queries; ++query)
    for (const KeyRange &range : allowedKeys(a, sequence, query, kvHead)) {
      ++steps[range.begin];
      --steps[range.end];
    }
  slot.reserve(static_cast<size_t>(keys));
  int64_t holders = 0, slots = 0;
  for (int64_t key = 0; key < keys; ++key) {
    slot.push_back(slots);
    holders += steps[key];
    slots += holders != 0;
  }
  k.resize(static_cast<size_t>(slots * qkDim));
  v.resize(static_cast<size_t>(slots * vDim));
  for (int64_t key = 0; key < keys; ++key) {
    if (slot[key] == (key + 1 < keys ? slot[key + 1] : slots))
      continue;
    a.k.read(sequence.keyBatch, begin + key, kvHead, std::span(k).subspan(slot[key] * qkDim, qkDim));
    a.v.read(sequence.keyBatch, begin + key, kvHead, std::span(v).subspan(slot[key] * vDim, vDim));
  }
}

} // namespace nsa::reference
