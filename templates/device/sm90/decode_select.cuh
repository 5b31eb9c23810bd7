// The list of selected blocks (docs/specification.md, section 5). Each block of the cluster scores its own selection
// blocks and sends the best of them to all. All blocks rank all that was sent, and come to the same list.
#pragma once

#include "sm90/decode_exchange.cuh"

namespace nsa {

// Makes `norms`: what is added to a score in base 2 to make it the logarithm of a probability. A head without weight
// adds nothing to any block. A head that met a NaN makes the importance of all blocks NaN.
template <typename Shape> NSA_DEVICE void make_norms(const DecodeMemory<Shape> &memory, float scale) {
  const int32 head = threadIdx.x;
  if (head < Shape::kGroup) {
    const WholeSoftmax whole = add_softmax(memory, kCmp, head, scale, [](int32, float) {});
    memory.floats(Shape::kNormsAt)[head] = whole.sum == 0 ? -infinity() : -whole.lse(scale);
  }
}

// Makes the sums of the probabilities of a compressed key over the heads of the group, in the order of the heads.
template <typename Shape>
NSA_DEVICE void add_heads(const DecodeMemory<Shape> &memory, const DecodePlace &place, float scale) {
  const float *scores = memory.floats(Shape::kScoresAt);
  const float *norms = memory.floats(Shape::kNormsAt);
#pragma unroll 1
  for (int32 key = threadIdx.x; key < place.past_key - place.first_key; key += Shape::kThreads) {
    float sum = 0;
#pragma unroll 8
    for (int32 head = 0; head < Shape::kGroup; ++head)
      sum += exp2_approx(fmaf(scores[head * Shape::kScorePitch + key], scale, norms[head]));
    memory.floats(Shape::kImportanceAt)[key] = place.first_key + key >= 0 ? sum : 0;
  }
}

// The score of a selection block. Forced blocks have the score +inf, and NaN is below all numbers. All scores are sums
// of probabilities, so no number is below 0.
template <typename Shape>
NSA_DEVICE float block_score(const DecodeMemory<Shape> &memory, const DecodePlace &place, int32 own, int32 init_blocks,
                             int32 local_blocks) {
  constexpr int32 kStrides = Shape::kBefore + 1; // of a compressed block
  const float *importance = memory.floats(Shape::kImportanceAt) + own * Shape::kInner;
  const int32 keys = place.past_key - place.first_key - own * Shape::kInner;
  float score = 0;
#pragma unroll 8
  for (int32 tap = 0; tap < Shape::kInner + Shape::kBefore; ++tap) {
    // The tokens that the two blocks share, in units of the stride.
    const int32 weight = min(tap + 1, Shape::kInner) - max(tap + 1 - kStrides, 0);
    score = fmaf(tap < keys ? importance[tap] : 0, static_cast<float>(weight), score);
  }
  const int32 block = place.first_block + own;
  const float number = score == infinity() ? 3.402823466e38f : score != score ? -1.0f : score;
  return block < init_blocks || block >= place.blocks - local_blocks ? infinity() : number;
}

// Returns how many of `scores` come before the one at `place`: the greater ones, and the equal ones that stand before
// it. `scores` begins at a multiple of 16 bytes and is filled up with -inf to a multiple of four numbers. The lanes of
// a warp have neighbouring places, and only among those of the warp does a lane have to ask which stands first.
NSA_DEVICE int32 count_before(const float *scores, int32 count, int32 place) {
  const float own = scores[place];
  const int32 warp_place = place / kWarpSize * kWarpSize;
  const int32 warp_past = min(warp_place + kWarpSize, count);
  int32 before = 0;
  const auto visit = [&](int32 first, int32 past, const auto &comes_before) {
#pragma unroll 2
    for (int32 i = first; i < past; i += 4) {
      const Chunk chunk = *reinterpret_cast<const Chunk *>(scores + i);
#pragma unroll
      for (int32 j = 0; j < 4; ++j)
        before += comes_before(__uint_as_float(chunk.words[j]), i + j) ? 1 : 0;
    }
  };
  visit(0, warp_place, [&](float other, int32) { return other >= own; });
  visit(warp_place, warp_past, [&](float other, int32 at) { return at < place ? other >= own : other > own; });
  visit(warp_past, count, [&](float other, int32) { return other > own; });
  return before;
}

// Sends the best kKept selection blocks of this block to all blocks. They stand in ascending order if all are sent, and
// else by their scores. So of equal scores in one block, the lower selection block always stands first.
template <typename Shape> NSA_DEVICE void push_candidates(const DecodeMemory<Shape> &memory, const DecodePlace &place) {
  const float *scores = memory.floats(Shape::kBlockScoresAt);
  const int32 owned = place.past_block - place.first_block;
  const uint32 barrier = shared_address(memory.barrier(kProposals));
#pragma unroll 1
  for (int32 own = threadIdx.x; own < max(owned, Shape::kKept); own += Shape::kThreads) {
    const int32 slot = owned <= Shape::kKept ? own : count_before(scores, owned, own);
    if (slot >= Shape::kKept)
      continue;
    const int32 index = place.rank * Shape::kKept + slot;
    const uint32 score = __float_as_uint(own < owned ? scores[own] : -infinity());
    const uint32 score_at = shared_address(memory.floats(Shape::kCandidateScoresAt) + index);
    const uint32 block_at = shared_address(memory.numbers(Shape::kCandidateBlocksAt) + index);
#pragma unroll 4
    for (int32 receiver = 0; receiver < Shape::kCluster; ++receiver) {
      const uint32 counter = cluster_address(barrier, receiver);
      push_word(cluster_address(score_at, receiver), score, counter);
      push_word(cluster_address(block_at, receiver), static_cast<uint32>(place.first_block + own), counter);
    }
  }
}

// Scores the block's own selection blocks and sends the best. All blocks have sent their softmax of compressed keys.
template <typename Shape>
NSA_DEVICE void propose_blocks(const DecodeMemory<Shape> &memory, const DecodePlace &place, float scale,
                               int32 init_blocks, int32 local_blocks) {
  make_norms(memory, scale);
  meet<Shape>();
  add_heads(memory, place, scale);
  meet<Shape>();
  constexpr int32 kRoom = round_up(Shape::kShare, 4);
  const int32 owned = place.past_block - place.first_block;
#pragma unroll 1
  for (int32 own = threadIdx.x; own < kRoom; own += Shape::kThreads)
    memory.floats(Shape::kBlockScoresAt)[own] =
        own < owned ? block_score(memory, place, own, init_blocks, local_blocks) : -infinity();
  // No block sends what stands behind the last candidate.
  const int32 behind = Shape::kCandidates + static_cast<int32>(threadIdx.x);
  if (behind < round_up(Shape::kCandidates, 4))
    memory.floats(Shape::kCandidateScoresAt)[behind] = -infinity();
  meet<Shape>();
  push_candidates(memory, place);
}

// Ranks the selection blocks that all blocks have sent and writes the list, best first.
template <typename Shape> NSA_DEVICE void make_list(const DecodeMemory<Shape> &memory, const DecodePlace &place) {
  const float *scores = memory.floats(Shape::kCandidateScoresAt);
#pragma unroll 1
  for (int32 i = threadIdx.x; i < Shape::kCandidates; i += Shape::kThreads) {
    const int32 slot = count_before(scores, Shape::kCandidates, i);
    if (slot < place.listed)
      memory.list()[slot] = memory.numbers(Shape::kCandidateBlocksAt)[i];
  }
}

} // namespace nsa
