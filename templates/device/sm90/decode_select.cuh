// The list of selected blocks (docs/specification.md, section 5). Each block of the cluster scores its own selection
// blocks and sends the best of them to all. All blocks rank what was sent, without candidates that cannot be listed,
// and come to the same list.
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
    rank_scores<Team>(scores, owned, [&](int32 own, int32 slot) {
      if (slot < place.proposed) {
        candidate_scores[first + slot] = scores[own];
        candidate_blocks[first + slot] = place.first_block + own;
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

// Copies the candidates that may have a place in the list to the memory behind them, in their order, and returns how
// many they are.
//
// All blocks of the cluster but the last ones own `share` selection blocks, more than they propose. So each of these
// `full` blocks has sent its best in descending order. If each has `enough` candidates of at least a score, together
// they fill the list, and no candidate below that score has a place in it. Each warp counts all that stay, so that
// warps need not tell each other where to write, and copies every kWarps-th group of 32.
template <typename Team>
NSA_DEVICE int32 gather_best(const DecodeMemory<Team> &memory, const DecodePlace &place, int32 share) {
  const float *scores = memory.floats(Team::kCandidateScoresAt);
  float *best_scores = memory.floats(Team::kBestScoresAt);
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  const int32 warp = Team::thread() / kWarpSize;

  const int32 full = place.blocks / share;
  const int32 enough = (place.listed + full - 1) / full;
  const int32 rank = lane % Team::kCluster;
  float least_score = rank < full ? scores[rank * place.proposed + enough - 1] : infinity();
#pragma unroll
  for (int32 distance = 1; distance < Team::kCluster; distance *= 2)
    least_score = min_number(least_score, shuffle_xor(least_score, distance));

  int32 gathered = 0;
#pragma unroll 1
  for (int32 first = 0; first < Team::kCluster * place.proposed; first += kWarpSize) {
    const int32 i = first + lane;
    const float score = i < Team::kCluster * place.proposed ? scores[i] : -infinity();
    const uint32 staying = ballot(score >= least_score);
    if (first / kWarpSize % Team::kWarps == warp && score >= least_score) {
      const int32 to = gathered + count_bits(staying & ((1u << lane) - 1));
      best_scores[to] = score;
      memory.numbers(Team::kBestBlocksAt)[to] = memory.numbers(Team::kCandidateBlocksAt)[i];
    }
    gathered += count_bits(staying);
  }
  if (const int32 behind = gathered + Team::thread(); behind < round_up(gathered, 4))
    best_scores[behind] = -infinity();
  meet<Team>();
  return gathered;
}

// Ranks the candidates and writes the list, best first. Where blocks have proposed only their best, candidates that
// cannot be listed are left out before. What a block sent behind its own selection blocks has no place in the list.
template <typename Team> NSA_DEVICE void make_list(const DecodeMemory<Team> &memory, const DecodePlace &place) {
  const int32 share = (place.blocks + Team::kCluster - 1) / Team::kCluster;
  const bool gathers = Team::kGathers && share > place.proposed;
  int32 count = Team::kCluster * place.proposed;
  if constexpr (Team::kGathers)
    if (gathers)
      count = gather_best<Team>(memory, place, share);
  const float *scores = memory.floats(gathers ? Team::kBestScoresAt : Team::kCandidateScoresAt);
  const int32 *blocks = memory.numbers(gathers ? Team::kBestBlocksAt : Team::kCandidateBlocksAt);
  rank_scores<Team>(scores, count, [&](int32 i, int32 slot) {
    if (slot < place.listed && scores[i] != -infinity())
      memory.list()[slot] = blocks[i];
  });
}

} // namespace nsa
