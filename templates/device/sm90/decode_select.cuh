// The list of selected blocks (docs/specification.md, section 5). Each block of the cluster scores its own selection
// blocks and sends the best of them to all. All blocks rank all that was sent, and come to the same list.
#pragma once

#include "sm90/decode_exchange.cuh"

namespace nsa {

// Makes the sums of the probabilities of a compressed key over the heads of the group, in the order of the heads.
template <typename Shape>
NSA_DEVICE void add_heads(const DecodeMemory<Shape> &memory, const DecodePlace &place, float scale) {
  // A norm is what is added to a score in base 2 to make it the logarithm of a probability. A head without weight adds
  // nothing to any block. A head that met a NaN makes the importance of all blocks NaN.
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
  int32 before[4] = {}; // one sum would make each comparison wait for the one before it
  const auto visit = [&](int32 first, int32 past, const auto &comes_before) {
#pragma unroll 4
    for (int32 i = first; i < past; i += 4) {
      const Chunk chunk = *reinterpret_cast<const Chunk *>(scores + i);
#pragma unroll
      for (int32 j = 0; j < 4; ++j)
        before[j] += comes_before(__uint_as_float(chunk.words[j]), i + j) ? 1 : 0;
    }
  };
  visit(0, warp_place, [&](float other, int32) { return other >= own; });
  visit(warp_place, warp_past, [&](float other, int32 at) { return at < place ? other >= own : other > own; });
  visit(warp_past, count, [&](float other, int32) { return other > own; });
  return before[0] + before[1] + (before[2] + before[3]);
}

// Sends the best selection blocks of this block to all others. They stand in ascending order if all are sent, and else
// by their scores. So of equal scores in one block, the lower selection block always stands first.
template <typename Shape> NSA_DEVICE void push_candidates(const DecodeMemory<Shape> &memory, const DecodePlace &place) {
  const float *scores = memory.floats(Shape::kBlockScoresAt);
  float *candidate_scores = memory.floats(Shape::kCandidateScoresAt);
  int32 *candidate_blocks = memory.numbers(Shape::kCandidateBlocksAt);
  const int32 owned = place.past_block - place.first_block;
  const int32 first = place.rank * place.proposed;
#pragma unroll 1
  for (int32 own = threadIdx.x; own < max(owned, place.proposed); own += Shape::kThreads) {
    const int32 slot = owned <= place.proposed ? own : count_before(scores, owned, own);
    if (slot >= place.proposed)
      continue;
    candidate_scores[first + slot] = own < owned ? scores[own] : -infinity();
    candidate_blocks[first + slot] = place.first_block + own;
  }
  meet<Shape>();
  const uint32 barrier = shared_address(memory.barrier(kProposals));
#pragma unroll 1
  for (int32 i = threadIdx.x; i < place.proposed * Shape::kCluster; i += Shape::kThreads) {
    const uint32 receiver = i % Shape::kCluster;
    if (receiver == static_cast<uint32>(place.rank))
      continue;
    const int32 index = first + i / Shape::kCluster;
    const uint32 counter = cluster_address(barrier, receiver);
    push_word(cluster_address(shared_address(candidate_scores + index), receiver),
              __float_as_uint(candidate_scores[index]), counter);
    push_word(cluster_address(shared_address(candidate_blocks + index), receiver),
              static_cast<uint32>(candidate_blocks[index]), counter);
  }
}

// Scores the block's own selection blocks and sends the best. The norms of the compressed branch are made.
template <typename Shape>
NSA_DEVICE void propose_blocks(const DecodeMemory<Shape> &memory, const DecodePlace &place, float scale,
                               int32 init_blocks, int32 local_blocks) {
  add_heads(memory, place, scale);
  meet<Shape>();
  const int32 owned = place.past_block - place.first_block;
#pragma unroll 1
  for (int32 own = threadIdx.x; own < round_up(owned, 4); own += Shape::kThreads)
    memory.floats(Shape::kBlockScoresAt)[own] =
        own < owned ? block_score(memory, place, own, init_blocks, local_blocks) : -infinity();
  // No block sends what stands behind the last candidate.
  const int32 candidates = Shape::kCluster * place.proposed;
  const int32 behind = candidates + static_cast<int32>(threadIdx.x);
  if (behind < round_up(candidates, 4))
    memory.floats(Shape::kCandidateScoresAt)[behind] = -infinity();
  meet<Shape>();
  push_candidates(memory, place);
}

// Ranks the selection blocks that all blocks have sent and writes the list, best first.
template <typename Shape> NSA_DEVICE void make_list(const DecodeMemory<Shape> &memory, const DecodePlace &place) {
  const float *scores = memory.floats(Shape::kCandidateScoresAt);
  const int32 candidates = Shape::kCluster * place.proposed;
#pragma unroll 1
  for (int32 i = threadIdx.x; i < candidates; i += Shape::kThreads) {
    const int32 slot = count_before(scores, candidates, i);
    if (slot < place.listed)
      memory.list()[slot] = memory.numbers(Shape::kCandidateBlocksAt)[i];
  }
}

} // namespace nsa
