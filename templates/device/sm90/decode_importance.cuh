// The importance of selection blocks (docs/specification.md, section 5): sums of the probabilities of compressed keys,
// weighted with the tokens that a compressed and a selection block share.
//
// The probabilities are known when all blocks of the cluster have sent their maxima and sums. Until then a block keeps
// weighted sums of the powers 2^(score - reference), for each head and each piece of 16 keys. Of a piece there is a sum
// for each unit of keys and each selection block that the unit reaches: half as many numbers as keys, for the usual
// sizes. The sums are a product of the powers with the weights. Each power is split into three bf16, which together
// have all of its digits.
//
// Selection blocks whose keys have equal scores get equal sums: all blocks are added up from units in the same order,
// and most pieces have the same reference, because it is a multiple of 64 in base 2.
#pragma once

#include "sm90/decode_attend.cuh"

namespace nsa {

// The tokens, in units of the stride, that a compressed key shares with the selection block which comes `later`
// selection blocks behind its own. `key` counts from the block's first key, where a selection block begins.
template <typename Team> NSA_DEVICE int32 shared_tokens(int32 key, int32 later) {
  constexpr int32 kStrides = Team::kBefore + 1; // of a compressed block
  const int32 tap = key % Team::kInner + Team::kBefore - later * Team::kInner;
  return tap < 0 ? 0 : min(tap + 1, Team::kInner) - max(tap + 1 - kStrides, 0);
}

// Adds up the powers of the scores of a warp's pieces.
template <typename Team> struct PooledScores {
  using Product = typename Team::Product;
  static constexpr int32 kTiles = Team::kRanks ? (Team::kReach + Product::kItems - 1) / Product::kItems : 1; // of sums
  static constexpr int32 kKeyTiles = kPieceKeys / Product::kItems;
  static constexpr float kGrain = 64;                            // of references
  static constexpr bool kAlike = kPieceKeys % Team::kInner == 0; // all pieces have the same weights

  NSA_DEVICE PooledScores(const DecodeMemory<Team> &memory, const DecodePlace &place, const WarpPlace<Team> &at,
                          float scale)
      : memory(memory), place(place), at(at), scale(scale) {
    if constexpr (Team::kRanks && kAlike)
      make_weights(0);
  }

  // Takes the scores of a piece, and their maxima for the thread's heads. Of a piece that is not `whole` some keys may
  // not exist. The warps that attend the same piece have the same scores, and take turns.
  NSA_DEVICE void add(const PieceScores<Team> &given, const HeadNumbers<Team> &given_tops, int32 piece, bool whole) {
    if (piece / Team::kKeyWarps % Team::kColumnWarps != at.column_warp)
      return;
    PieceScores<Team> s;
    HeadNumbers<Team> tops;
#pragma unroll
    for (int32 head = 0; head < Product::kThreadHeads; ++head)
      tops[head] = given_tops[head];
#pragma unroll
    for (int32 tile = 0; tile < kKeyTiles; ++tile)
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        s[tile][i] = given[tile][i];
    if (!whole) {
      hide_missing(s, piece);
      find_tops<Team>(tops, s);
    }
    if constexpr (!kAlike)
      make_weights(piece);
    PieceScores<Team> rest = {}; // of heads that do not exist, 0
#pragma unroll
    for (int32 head = 0; head < Product::kThreadHeads; ++head) {
      // Without a score above -inf all powers are 0, and so is the factor of the reference.
      const bool empty = tops[head] == -infinity();
      const float reference = empty ? 0 : floorf(fmaf(tops[head], scale / kGrain, 0.5f)) * kGrain;
      if (at.first_of_heads() && at.head(head) < Team::kGroup)
        memory.reference(at.head(head), piece) = empty ? -infinity() : reference;
#pragma unroll
      for (int32 tile = 0; tile < kKeyTiles; ++tile)
#pragma unroll
        for (int32 item = 0; item < 2; ++item) {
          const int32 i = Product::element(head, item);
          rest[tile][i] = exp2_approx(fmaf(s[tile][i], scale, -reference));
        }
    }
    uint32 powers[3][Product::kHeadWords];
#pragma unroll
    for (int32 part = 0; part < 3; ++part) {
      uint32 pairs[kKeyTiles][2];
#pragma unroll
      for (int32 tile = 0; tile < kKeyTiles; ++tile)
#pragma unroll
        for (int32 i = 0; i < 2; ++i) {
          float (&numbers)[4] = rest[tile];
          const Pair<bf16> pair = Pair<bf16>::make(numbers[2 * i], numbers[2 * i + 1]);
          pairs[tile][i] = pair.bits;
#pragma unroll
          for (int32 of = 0; of < 2; ++of)
            if (Product::head_of(2 * i + of) < Product::kThreadHeads)
              numbers[2 * i + of] -= to_float(pair.get(of));
        }
      Product::arrange(powers[part], pairs);
    }
#pragma unroll
    for (int32 tile = 0; tile < kTiles; ++tile) {
      float sums[4] = {};
#pragma unroll
      for (int32 part = 2; part >= 0; --part)
        Product::template multiply<bf16>(sums, powers[part], weights[tile]);
      Product::store(memory.pooled(0, piece) + tile * Product::kItems, Team::kPoolPitch, sums, at.lane, at.first_head,
                     Team::kGroup, Team::kReach - tile * Product::kItems);
    }
  }

private:
  // Makes the scores of keys that do not exist -inf.
  NSA_DEVICE void hide_missing(PieceScores<Team> &s, int32 piece) const {
#pragma unroll
    for (int32 tile = 0; tile < kKeyTiles; ++tile)
#pragma unroll
      for (int32 item = 0; item < 2; ++item) {
        const int32 key = piece * kPieceKeys + tile * Product::kItems + Product::item(item, at.lane);
        const bool exists = key < place.past_key - place.first_key && place.first_key + key >= 0;
#pragma unroll
        for (int32 head = 0; head < Product::kThreadHeads; ++head) {
          float &score = s[tile][Product::element(head, item)];
          score = exists ? score : -infinity();
        }
      }
  }

  // The weights of 16 keys for the sums of each tile, as the operand of items.
  NSA_DEVICE void make_weights(int32 piece) {
    constexpr int32 kEights = Product::kItems / 8; // of sums
#pragma unroll
    for (int32 eight = 0; eight < kTiles * kEights; ++eight) {
      const int32 column = eight * 8 + at.lane / 4;
      const auto weight = [&](int32 key) {
        return key / Team::kUnit == column / (Team::kBack + 1)
                   ? static_cast<float>(shared_tokens<Team>(piece * kPieceKeys + key, column % (Team::kBack + 1)))
                   : 0.0f;
      };
#pragma unroll
      for (int32 half = 0; half < 2; ++half) {
        const int32 key = half * 8 + at.lane % 4 * 2;
        weights[eight / kEights][half * kEights + eight % kEights] =
            Pair<bf16>::make(weight(key), weight(key + 1)).bits;
      }
    }
  }

  const DecodeMemory<Team> memory;
  const DecodePlace &place;
  const WarpPlace<Team> &at;
  const float scale;
  uint32 weights[kTiles][Product::kItemWords];
};

// In the place of the references come the factors that make probabilities of the powers. The norms of the compressed
// branch are made: a norm is what is added to a score in base 2 to make it the logarithm of a probability. A head
// without weight adds nothing to any block. A head that met a NaN makes the importance of all blocks NaN.
template <typename Team> NSA_DEVICE void make_pool_factors(const DecodeMemory<Team> &memory, int32 pieces) {
  const float *norms = memory.floats(Team::kNormsAt);
#pragma unroll 1
  for (int32 i = Team::thread(); i < pieces * Team::kGroup; i += Team::kThreads) {
    const int32 head = i % Team::kGroup;
    float &number = memory.reference(head, i / Team::kGroup);
    number = exp2_approx(number + norms[head]);
  }
}

// Lanes that add up the importance of a selection block together: a power of two, because shuffles add up what they
// have. Lanes without a head would make the other selection blocks wait.
template <typename Team> inline constexpr int32 kAdders = Team::kGroup > 4 ? 8 : Team::kGroup > 2 ? 4 : Team::kGroup;

// The importance of a selection block of the block, in units of the stride. kAdders neighbouring lanes ask for one
// selection block, and all lanes of the warp ask.
template <typename Team>
NSA_DEVICE float importance_of(const DecodeMemory<Team> &memory, const DecodePlace &place, int32 own) {
  constexpr int32 kUnits = Team::kInner / Team::kUnit; // of a selection block
  const int32 keys = place.past_key - place.first_key;
  float sum = 0;
#pragma unroll
  for (int32 later = Team::kBack; later >= 0; --later)
#pragma unroll
    for (int32 of = 0; of < kUnits; ++of) {
      const int32 unit = (own + Team::kBack - later) * kUnits + of;
      if (unit * Team::kUnit >= keys)
        continue;
      const int32 piece = unit * Team::kUnit / kPieceKeys;
      const int32 column = unit % (kPieceKeys / Team::kUnit) * (Team::kBack + 1) + later;
#pragma unroll
      for (int32 head = threadIdx.x % kAdders<Team>; head < Team::kGroup; head += kAdders<Team>)
        sum = fmaf(memory.pooled(head, piece)[column], memory.reference(head, piece), sum);
    }
#pragma unroll
  for (int32 distance = 1; distance < kAdders<Team>; distance *= 2)
    sum += shuffle_xor(sum, distance);
  return sum;
}

} // namespace nsa
