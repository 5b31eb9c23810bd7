// What the table of a decoding batch says, by the sentences in front of templates/tile/cache_sequences.tile.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/sequence_fields.h"

#include <array>
#include <cstdint>

namespace nsa::test {

using CacheRow = std::array<int32_t, kSequenceFields>;

// One sequence of a step, well-formed.
struct CacheGrowth {
  int32_t block, stride; // of compression
  int32_t sequence;
  int64_t length, added; // tokens that stood in the cache, and new ones
  int64_t newBegin;      // rows of new tokens in front of it, all sequences' together
  bool isPacked;         // those are rows of one tensor

  int64_t blocks(int64_t tokens) const { return tokens < block ? 0 : (tokens - block) / stride + 1; }
  // The first token of the first new block, and so of those that are staged.
  int64_t firstStaged() const { return blocks(length) * stride; }
  int64_t newBlocks() const { return blocks(length + added) - blocks(length); }
  int64_t stagedBegin() const { return newBegin + sequence * (block - 1); }

  CacheRow attending() const {
    return {int32_t(isPacked ? newBegin : 0),
            int32_t(added),
            0,
            int32_t(length + added),
            0,
            int32_t(blocks(length + added)),
            sequence,
            isPacked ? 0 : sequence};
  }
  CacheRow compressing() const {
    return {0,
            0,
            int32_t(stagedBegin()),
            int32_t(length + added - firstStaged()),
            int32_t(blocks(length)),
            int32_t(newBlocks()),
            0,
            sequence};
  }
};

} // namespace nsa::test
