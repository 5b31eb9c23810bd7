// The list of selected blocks (docs/specification.md, section 5). Each block of the cluster scores its own selection
// blocks and sends the best of them to all. All blocks rank what was sent, without candidates that cannot be listed,
// and come to the same list.
#pragma once

#include "sm90/decode_exchange.cuh"
#include "sm90/decode_importance.cuh"

namespace nsa {

// The score of a selection block. Forced blocks have the score +inf, and NaN is below all numbers. All scores are sums
// of probabilities, so no number is below 0.
NSA_DEVICE float block_score(const DecodePlace &place, int32 own, float importance, int32 init_blocks,
                             int32 local_blocks) {
  const int32 block = place.first_block + own;
  const float number = importance == infinity() ? 3.402823466e38f : importance != importance ? -1.0f : importance;
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

// Returns a number that at least `wanted` of the scores reach. The lanes of a warp divide the scores into groups, at
// least `wanted` of them, and the least of the groups' maxima is reached by a score of each group.
NSA_DEVICE float least_of_best(const float *scores, int32 count, int32 wanted) {
  if (wanted > kWarpSize)
    return -infinity();
  float least = -infinity();
#pragma unroll 4
  for (int32 i = static_cast<int32>(threadIdx.x) % kWarpSize; i < count; i += kWarpSize)
    least = max_number(least, scores[i]);
#pragma unroll
  for (int32 distance = kWarpSize / 2; distance > 0; distance /= 2) {
    const float other = shuffle_xor(least, distance);
    least = distance >= wanted ? max_number(least, other) : min_number(least, other);
  }
  return least;
}

// Returns a number that at least `listed` candidates reach. All blocks of the cluster but the last ones own `share`
// selection blocks, more than they propose. So each of these `full` blocks has sent its best in descending order, and
// if each has `enough` candidates of at least a score, together they fill the list.
template <typename Team>
NSA_DEVICE float least_of_candidates(const DecodeMemory<Team> &memory, const DecodePlace &place, int32 share) {
  const int32 full = place.blocks / share;
  const int32 enough = (place.listed + full - 1) / full;
  const int32 rank = static_cast<int32>(threadIdx.x) % Team::kRankLanes;
  const float *scores = memory.floats(Team::kCandidateScoresAt);
  float least = rank < full ? scores[rank * place.proposed + enough - 1] : infinity();
#pragma unroll
  for (int32 distance = 1; distance < Team::kRankLanes; distance *= 2)
    least = min_number(least, shuffle_xor(least, distance));
  return least;
}

// Copies the scores of at least `least` to the memory of the best, in their order, with the blocks `block_of(i)`, and
// returns how many they are. Each warp counts all that stay, so that warps need not tell each other where to write, and
// copies every kWarps-th 32 scores.
template <typename Team, typename BlockOf>
NSA_DEVICE int32 gather_best(const DecodeMemory<Team> &memory, const float *scores, int32 count, float least,
                             const BlockOf &block_of) {
  float *best_scores = memory.floats(Team::kBestScoresAt);
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  const int32 warp = Team::thread() / kWarpSize;

  int32 gathered = 0;
#pragma unroll 1
  for (int32 first = 0; first < count; first += kWarpSize) {
    const int32 i = first + lane;
    const bool stays = i < count && scores[i] >= least;
    const uint32 staying = ballot(stays);
    if (first / kWarpSize % Team::kWarps == warp && stays) {
      const int32 to = gathered + count_bits(staying & ((1u << lane) - 1));
      best_scores[to] = scores[i];
      memory.numbers(Team::kBestBlocksAt)[to] = block_of(i);
    }
    gathered += count_bits(staying);
  }
  if (const int32 behind = gathered + Team::thread(); behind < round_up(gathered, 4))
    best_scores[behind] = -infinity();
  meet<Team>();
  return gathered;
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
  } else if constexpr (Team::kGathers) {
    const bool gathers = owned > Team::kThreads / kCounters; // few scores are ranked in one turn of the threads
    const int32 *best_blocks = memory.numbers(Team::kBestBlocksAt);
    int32 count = owned;
    if (gathers) {
      count = gather_best(memory, scores, owned, least_of_best(scores, owned, place.proposed),
                          [&](int32 own) { return place.first_block + own; });
      scores = memory.floats(Team::kBestScoresAt);
    }
    rank_scores<Team>(scores, count, [&](int32 i, int32 slot) {
      if (slot < place.proposed) {
        candidate_scores[first + slot] = scores[i];
        candidate_blocks[first + slot] = gathers ? best_blocks[i] : place.first_block + i;
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

// Scores the block's own selection blocks and sends the best. The norms of the compressed branch are made, and `pieces`
// of its keys were attended.
template <typename Team>
NSA_DEVICE void propose_blocks(const DecodeMemory<Team> &memory, const DecodePlace &place, int32 pieces,
                               int32 init_blocks, int32 local_blocks) {
  make_pool_factors(memory, pieces);
  meet<Team>();
  const int32 owned = place.past_block - place.first_block;
#pragma unroll 1
  for (int32 first = 0; first < owned; first += Team::kThreads / kAdders<Team>) {
    const int32 own = first + Team::thread() / kAdders<Team>;
    const float importance = importance_of(memory, place, min(own, owned - 1));
    if (own < owned && threadIdx.x % kAdders<Team> == 0)
      memory.floats(Team::kBlockScoresAt)[own] = block_score(place, own, importance, init_blocks, local_blocks);
  }
  if (const int32 behind = owned + Team::thread(); behind < round_up(owned, 4))
    memory.floats(Team::kBlockScoresAt)[behind] = -infinity();
  // No block sends what stands behind the last candidate.
  const int32 candidates = Team::kCluster * place.proposed;
  if (const int32 behind = candidates + Team::thread(); behind < round_up(candidates, 4))
    memory.floats(Team::kCandidateScoresAt)[behind] = -infinity();
  meet<Team>();
  push_candidates(memory, place);
}

// Ranks the candidates and writes the list, best first. Forced blocks stand in front of all others in ascending order,
// and loaders rely on it (DecodeLoader::list_forced). Where blocks have proposed only their best, candidates that
// cannot be listed are left out before. What a block sent behind its own selection blocks has no place in the list.
template <typename Team> NSA_DEVICE void make_list(const DecodeMemory<Team> &memory, const DecodePlace &place) {
  const float *scores = memory.floats(Team::kCandidateScoresAt);
  const int32 *blocks = memory.numbers(Team::kCandidateBlocksAt);
  int32 count = Team::kCluster * place.proposed;
  const int32 share = (place.blocks + Team::kCluster - 1) / Team::kCluster;
  if constexpr (Team::kGathers)
    if (share > place.proposed) {
      count = gather_best(memory, scores, count, least_of_candidates(memory, place, share),
                          [&](int32 i) { return blocks[i]; });
      scores = memory.floats(Team::kBestScoresAt);
      blocks = memory.numbers(Team::kBestBlocksAt);
    }
  rank_scores<Team>(scores, count, [&](int32 i, int32 slot) {
    if (slot < place.listed && scores[i] != -infinity())
      memory.list()[slot] = blocks[i];
  });
}

} // namespace nsa
