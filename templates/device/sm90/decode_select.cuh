// The list of selected blocks (docs/specification.md, section 5). Each block of the cluster scores its own selection
// blocks and sends the best of them to all. All blocks rank all that was sent, and come to the same list.
#pragma once

#include "sm90/decode_exchange.cuh"

namespace nsa {

// Makes the sums of the probabilities of a compressed key over the heads of the group, in the order of the heads.
template <typename Team>
NSA_DEVICE void add_heads(const DecodeMemory<Team> &memory, const DecodePlace &place, float scale) {
  // A norm is what is added to a score in base 2 to make it the logarithm of a probability. A head without weight adds
  // nothing to any block. A head that met a NaN makes the importance of all blocks NaN.
  const float *scores = memory.floats(Team::kScoresAt);
  const float *norms = memory.floats(Team::kNormsAt);
#pragma unroll 1
  for (int32 key = Team::thread(); key < place.past_key - place.first_key; key += Team::kThreads) {
    float sum = 0;
#pragma unroll 8
    for (int32 head = 0; head < Team::kGroup; ++head)
      sum += exp2_approx(fmaf(scores[head * Team::kScorePitch + key], scale, norms[head]));
    memory.floats(Team::kImportanceAt)[key] = place.first_key + key >= 0 ? sum : 0;
  }
}

// The score of a selection block. Forced blocks have the score +inf, and NaN is below all numbers. All scores are sums
// of probabilities, so no number is below 0.
template <typename Team>
NSA_DEVICE float block_score(const DecodeMemory<Team> &memory, const DecodePlace &place, int32 own, int32 init_blocks,
                             int32 local_blocks) {
  constexpr int32 kStrides = Team::kBefore + 1; // of a compressed block
  const float *importance = memory.floats(Team::kImportanceAt) + own * Team::kInner;
  const int32 keys = place.past_key - place.first_key - own * Team::kInner;
  float score = 0;
#pragma unroll 8
  for (int32 tap = 0; tap < Team::kInner + Team::kBefore; ++tap) {
    // The tokens that the two blocks share, in units of the stride.
    const int32 weight = min(tap + 1, Team::kInner) - max(tap + 1 - kStrides, 0);
    score = fmaf(tap < keys ? importance[tap] : 0, static_cast<float>(weight), score);
  }
  const int32 block = place.first_block + own;
  const float number = score == infinity() ? 3.402823466e38f : score != score ? -1.0f : score;
  return block < init_blocks || block >= place.blocks - local_blocks ? infinity() : number;
}

// Lanes that count together what comes before a score.
inline constexpr int32 kCounters = 4;

// Returns how many of `scores` come before the one at `place`: the greater ones, and the equal ones that stand before
// it. `scores` begins at a multiple of 16 bytes and is filled up with -inf to a multiple of four numbers. The score at
// `place` is not -inf, or the result is of no use. kCounters neighbouring lanes ask for one place, and all lanes of the
// warp ask.
NSA_DEVICE int32 count_before(const float *scores, int32 count, int32 place) {
  const float own = scores[place];
  int32 before = 0;
#pragma unroll 1
  for (int32 i = 4 * (static_cast<int32>(threadIdx.x) % kCounters); i < count; i += 4 * kCounters) {
    const Chunk quad = *reinterpret_cast<const Chunk *>(scores + i);
#pragma unroll
    for (int32 j = 0; j < 4; ++j) {
      const float score = __uint_as_float(quad.words[j]);
      before += score > own || (score == own && i + j < place) ? 1 : 0;
    }
  }
#pragma unroll
  for (int32 distance = 1; distance < kCounters; distance *= 2)
    before += shuffle_xor(before, distance);
  return before;
}

// Calls use(i, slot) for each of the first `count` scores, in one thread. `slot` is the number of scores before it.
template <typename Team, typename Use> NSA_DEVICE void rank_scores(const float *scores, int32 count, const Use &use) {
#pragma unroll 1
  for (int32 first = 0; first < count; first += Team::kThreads / kCounters) {
    const int32 i = first + Team::thread() / kCounters;
    const int32 slot = count_before(scores, count, min(i, count - 1));
    if (i < count && threadIdx.x % kCounters == 0)
      use(i, slot);
  }
}

// Copies the scores that are at least `least` to memory of their own, in their order, and beside each what `block` says
// of it. Returns how many they are. If they are more than kBest, the rest is not copied. Each warp counts all, and
// copies every kWarps-th group of 32.
template <typename Team, typename Block>
NSA_DEVICE int32 gather_best(const DecodeMemory<Team> &memory, const float *scores, int32 count, float least,
                             const Block &block) {
  float *best_scores = memory.floats(Team::kBestScoresAt);
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  int32 gathered = 0;
#pragma unroll 1
  for (int32 first = 0; first < count; first += kWarpSize) {
    const int32 i = first + lane;
    const float score = i < count ? scores[i] : -infinity();
    const uint32 stays = ballot(score >= least);
    const int32 to = gathered + count_bits(stays & ((1u << lane) - 1));
    if (first / kWarpSize % Team::kWarps == Team::thread() / kWarpSize && score >= least && to < Team::kBest) {
      best_scores[to] = score;
      memory.numbers(Team::kBestBlocksAt)[to] = block(i);
    }
    gathered += count_bits(stays);
  }
  if (const int32 behind = gathered + Team::thread(); behind < round_up(gathered, 4) && behind < Team::kBest)
    best_scores[behind] = -infinity();
  meet<Team>();
  return gathered;
}

// Returns a score that at least kSelCount of `scores` reach. The scores are dealt to as many groups, and the least of
// the groups' greatest scores is such a score.
template <typename Team> NSA_DEVICE float least_of_groups(const float *scores, int32 count) {
  constexpr int32 kSelCount = Team::Facts::kSelCount;
  constexpr int32 kGroups = kSelCount <= 4 ? 4 : kSelCount <= 8 ? 8 : kSelCount <= 16 ? 16 : 32;
  if (kSelCount > kGroups)
    return -1;
  float greatest = -infinity();
#pragma unroll 4
  for (int32 i = static_cast<int32>(threadIdx.x) % kWarpSize; i < count; i += kWarpSize)
    greatest = max_number(greatest, scores[i]);
#pragma unroll
  for (int32 distance = kGroups; distance < kWarpSize; distance *= 2)
    greatest = max_number(greatest, shuffle_xor(greatest, distance));
  float least = greatest;
#pragma unroll
  for (int32 distance = 1; distance < kGroups; distance *= 2)
    least = min_number(least, shuffle_xor(least, distance));
  return max_number(least, -1);
}

// Sends the best selection blocks of this block to all others. They stand in ascending order if all are sent, and else
// by their scores. So of equal scores in one block, the lower selection block always stands first.
template <typename Team> NSA_DEVICE void push_candidates(const DecodeMemory<Team> &memory, const DecodePlace &place) {
  const float *scores = memory.floats(Team::kBlockScoresAt);
  float *candidate_scores = memory.floats(Team::kCandidateScoresAt);
  int32 *candidate_blocks = memory.numbers(Team::kCandidateBlocksAt);
  const int32 owned = place.past_block - place.first_block;
  const int32 first = place.rank * place.proposed;
  if (owned <= place.proposed) {
#pragma unroll 1
    for (int32 own = Team::thread(); own < place.proposed; own += Team::kThreads) {
      candidate_scores[first + own] = own < owned ? scores[own] : -infinity();
      candidate_blocks[first + own] = place.first_block + own;
    }
  } else {
    // Comparing each of many scores with all others takes longer than leaving out most of them first.
    int32 gathered = owned;
    if (owned > 4 * place.proposed)
      gathered = gather_best<Team>(memory, scores, owned, least_of_groups<Team>(scores, owned),
                                   [&](int32 own) { return place.first_block + own; });
    const bool leaves = owned > 4 * place.proposed && gathered <= Team::kBest;
    const float *ranked = leaves ? memory.floats(Team::kBestScoresAt) : scores;
    rank_scores<Team>(ranked, leaves ? gathered : owned, [&](int32 i, int32 slot) {
      if (slot < place.proposed) {
        candidate_scores[first + slot] = ranked[i];
        candidate_blocks[first + slot] = leaves ? memory.numbers(Team::kBestBlocksAt)[i] : place.first_block + i;
      }
    });
  }
  meet<Team>();
  const uint32 barrier = shared_address(memory.barrier(kProposals));
#pragma unroll 1
  for (int32 i = Team::thread(); i < place.proposed * Team::kCluster; i += Team::kThreads) {
    const uint32 receiver = i % Team::kCluster;
    if (receiver == static_cast<uint32>(place.rank))
      continue;
    const int32 index = first + i / Team::kCluster;
    const uint32 counter = cluster_address(barrier, receiver);
    push_word(cluster_address(shared_address(candidate_scores + index), receiver),
              __float_as_uint(candidate_scores[index]), counter);
    push_word(cluster_address(shared_address(candidate_blocks + index), receiver),
              static_cast<uint32>(candidate_blocks[index]), counter);
  }
}

// Scores the block's own selection blocks and sends the best. The norms of the compressed branch are made.
template <typename Team>
NSA_DEVICE void propose_blocks(const DecodeMemory<Team> &memory, const DecodePlace &place, float scale,
                               int32 init_blocks, int32 local_blocks) {
  add_heads(memory, place, scale);
  meet<Team>();
  const int32 owned = place.past_block - place.first_block;
#pragma unroll 1
  for (int32 own = Team::thread(); own < round_up(owned, 4); own += Team::kThreads)
    memory.floats(Team::kBlockScoresAt)[own] =
        own < owned ? block_score(memory, place, own, init_blocks, local_blocks) : -infinity();
  // No block sends what stands behind the last candidate.
  const int32 candidates = Team::kCluster * place.proposed;
  if (const int32 behind = candidates + Team::thread(); behind < round_up(candidates, 4))
    memory.floats(Team::kCandidateScoresAt)[behind] = -infinity();
  meet<Team>();
  push_candidates(memory, place);
}

// Returns a score that at least as many candidates reach as the list has places. A block owns `share` selection blocks,
// which are more than it proposes, so it has sent its best in order. Only the last blocks may own fewer. If each of the
// `full` others has `enough` candidates of at least a score, they fill the list.
template <typename Team> NSA_DEVICE float least_of_blocks(const float *scores, const DecodePlace &place, int32 share) {
  const int32 full = place.blocks / share;
  const int32 enough = (place.listed + full - 1) / full;
  const int32 rank = static_cast<int32>(threadIdx.x) % Team::kCluster;
  float least = rank < full ? scores[rank * place.proposed + enough - 1] : infinity();
#pragma unroll
  for (int32 distance = 1; distance < Team::kCluster; distance *= 2)
    least = min_number(least, shuffle_xor(least, distance));
  return least;
}

// Ranks the selection blocks that all blocks have sent and writes the list, best first. What a block sent behind its
// own selection blocks has no place in it.
template <typename Team> NSA_DEVICE void make_list(const DecodeMemory<Team> &memory, const DecodePlace &place) {
  const float *scores = memory.floats(Team::kCandidateScoresAt);
  const int32 *blocks = memory.numbers(Team::kCandidateBlocksAt);
  int32 count = Team::kCluster * place.proposed;
  if (const int32 share = (place.blocks + Team::kCluster - 1) / Team::kCluster; share > place.proposed) {
    count = gather_best<Team>(memory, scores, count, least_of_blocks<Team>(scores, place, share),
                              [&](int32 i) { return memory.numbers(Team::kCandidateBlocksAt)[i]; });
    scores = memory.floats(Team::kBestScoresAt);
    blocks = memory.numbers(Team::kBestBlocksAt);
  }
  rank_scores<Team>(scores, count, [&](int32 i, int32 slot) {
    if (slot < place.listed && scores[i] != -infinity())
      memory.list()[slot] = blocks[i];
  });
}

} // namespace nsa
