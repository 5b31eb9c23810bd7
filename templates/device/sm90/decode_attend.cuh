// Attention of the heads of a group over pieces of 16 keys in shared memory, with the online softmax of
// templates/tile/library/softmax.tile. Each warp attends its pieces for the heads of a product (decode_product.cuh),
// and keeps the maxima, the sums and the result of its keys in registers. The warps of a team wait for each other at
// the end of a branch, where decode_exchange.cuh adds up what they have.
#pragma once

#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_matrix.cuh"
#include "ptx_warp.cuh"
#include "sm90/decode_ring.cuh"

namespace nsa {

// Which heads, pieces and columns of V a warp takes, and which of the heads the thread holds.
template <typename Team> struct WarpPlace {
  int32 warp = Team::thread() / kWarpSize;
  int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  int32 first_head = warp % Team::kHeadTiles * Team::Product::kHeads;
  int32 key_warp = warp / Team::kHeadTiles % Team::kKeyWarps;
  int32 column_warp = warp / (Team::kHeadTiles * Team::kKeyWarps);
  int32 first_column = column_warp * Team::kColumns;

  NSA_DEVICE int32 head(int32 number) const { return first_head + Team::Product::head(number, lane); }
  // Whether the lane is the first of those that hold the same heads.
  NSA_DEVICE bool first_of_heads() const { return lane / Team::Product::kNearest % kSameHeads == 0; }

private:
  static constexpr int32 kSameHeads = 2 * Team::Product::kFurthest / Team::Product::kNearest;
};

// The queries of the warp's heads as operands. One load brings four registers of a thread, one or two steps of the
// product. As many loads as fit stay in registers: a thread has 128 of them in a block of 16 warps. The window's team
// loads its queries for each piece, because it has few pieces.
template <typename Team> struct DecodeQueries {
  using Product = typename Team::Product;
  static constexpr int32 kSteps = Team::kQkPad / 16;
  static constexpr int32 kLoadSteps = 4 / Product::kHeadWords; // of a load
  static constexpr int32 kLoads = kSteps / kLoadSteps;
  static constexpr int32 kResults = Team::kColumns * 4 / Product::kItems; // registers of the results
  static constexpr int32 kRegisters = (Team::kIsWindow ? 0 : Product::kRegisters) - kResults;
  static constexpr int32 kMostHeld = kRegisters < 4 ? 0 : kRegisters / 4;
  static constexpr int32 kHeld = kMostHeld < kLoads ? kMostHeld : kLoads;

  NSA_DEVICE void load(unsigned char *queries, const WarpPlace<Team> &at) {
    address = shared_address(queries) + at.first_head * Team::kKPitch + Product::query_offset(at.lane, Team::kKPitch);
#pragma unroll
    for (int32 load = 0; load < kHeld; ++load)
      ldmatrix_x4(held[load], address + load * kLoadSteps * 2 * kChunkBytes);
  }

  NSA_DEVICE void get(uint32 (&operand)[4], int32 load) const {
    if (load >= kHeld)
      return ldmatrix_x4(operand, address + load * kLoadSteps * 2 * kChunkBytes);
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      operand[i] = held[load][i];
  }

private:
  uint32 address;
  uint32 held[kHeld > 0 ? kHeld : 1][4];
};

// The scores of 16 keys, and a number for each of the thread's heads.
template <typename Team> using PieceScores = float[kPieceKeys / Team::Product::kItems][4];
template <typename Team> using HeadNumbers = float[Team::Product::kThreadHeads];

// The state of a branch: the maxima of the thread's heads over the warp's keys, the thread's part of their sums, and
// the warp's columns of the result.
template <typename Team> struct DecodeState {
  static constexpr int32 kTiles = Team::kColumns / Team::Product::kItems;

  NSA_DEVICE void clear() {
#pragma unroll
    for (int32 head = 0; head < Team::Product::kThreadHeads; ++head) {
      m[head] = -infinity();
      l[head] = 0;
    }
#pragma unroll
    for (int32 tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        o[tile][i] = 0;
  }

  HeadNumbers<Team> m;
  HeadNumbers<Team> l;
  float o[kTiles][4];
};

// Makes the scores of the 16 keys whose rows begin at `keys`. Each product waits for the one before it, so even and odd
// steps have sums of their own.
template <typename Team>
NSA_DEVICE void score_keys(PieceScores<Team> &s, const DecodeQueries<Team> &queries, uint32 keys, int32 lane) {
  using T = typename Team::Element;
  using Product = typename Team::Product;
  constexpr int32 kTiles = kPieceKeys / Product::kItems;
  constexpr int32 kLoadSteps = DecodeQueries<Team>::kLoadSteps;
  const uint32 row = keys + Product::key_offset(lane, Team::kKPitch);
  PieceScores<Team> odd;
#pragma unroll
  for (int32 tile = 0; tile < kTiles; ++tile)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      s[tile][i] = odd[tile][i] = 0;
#pragma unroll
  for (int32 step = 0; step < DecodeQueries<Team>::kSteps; step += 2) {
    uint32 k[2][4], q[2 / kLoadSteps][4];
#pragma unroll
    for (int32 i = 0; i < 2; ++i) {
      ldmatrix_x4(k[i], row + (step + i) * 2 * kChunkBytes);
      if (i % kLoadSteps == 0)
        queries.get(q[i / kLoadSteps], (step + i) / kLoadSteps);
    }
#pragma unroll
    for (int32 tile = 0; tile < kTiles; ++tile) {
      Product::template multiply<T>(s[tile], q[0], k[0] + tile * Product::kItemWords);
      Product::template multiply<T>(odd[tile], q[1 / kLoadSteps] + 1 % kLoadSteps * Product::kHeadWords,
                                    k[1] + tile * Product::kItemWords);
    }
  }
#pragma unroll
  for (int32 tile = 0; tile < kTiles; ++tile)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      s[tile][i] += odd[tile][i];
}

// The maxima of the scores of a piece for the thread's heads.
template <typename Team> NSA_DEVICE void find_tops(HeadNumbers<Team> &tops, const PieceScores<Team> &s) {
  using Product = typename Team::Product;
#pragma unroll
  for (int32 head = 0; head < Product::kThreadHeads; ++head) {
    const auto top_of = [&](const float (&tile)[4]) {
      return max_number(tile[Product::element(head, 0)], tile[Product::element(head, 1)]);
    };
    float top = top_of(s[0]);
#pragma unroll
    for (int32 tile = 1; tile < kPieceKeys / Product::kItems; ++tile)
      top = max_number(top, top_of(s[tile]));
#pragma unroll
    for (int32 distance = Product::kNearest; distance <= Product::kFurthest; distance *= 2)
      top = max_number(top, shuffle_xor(top, distance));
    tops[head] = top;
  }
}

// Takes the scores `s`, in which keys that the query does not attend are -inf, their maxima, and the values of the 16
// keys whose rows begin at `values` into the state. Without values only the maxima and the sums are of use.
template <typename Team>
NSA_DEVICE void add_piece(DecodeState<Team> &state, const PieceScores<Team> &s, const HeadNumbers<Team> &tops,
                          uint32 values, const WarpPlace<Team> &at, float scale, bool with_values) {
  using T = typename Team::Element;
  using Product = typename Team::Product;
  constexpr int32 kTiles = kPieceKeys / Product::kItems;
  PieceScores<Team> weights = {}; // of heads that do not exist, 0
  HeadNumbers<Team> decays;
#pragma unroll
  for (int32 head = 0; head < Product::kThreadHeads; ++head) {
    const float top = max_number(tops[head], state.m[head]);
    // A head whose scores so far are all -inf takes its weights against 0 instead of -inf, and they are 0.
    const float finite = top == -infinity() ? 0 : top;
    decays[head] = exp2_approx((state.m[head] - finite) * scale);
    state.m[head] = top;
    state.l[head] *= decays[head];
#pragma unroll
    for (int32 tile = 0; tile < kTiles; ++tile) {
      const auto weight = [&](int32 item) {
        const int32 i = Product::element(head, item);
        return weights[tile][i] = exp2_approx(fmaf(s[tile][i], scale, -(finite * scale)));
      };
      const float first = weight(0);
      state.l[head] += first + weight(1);
    }
  }
  if (!with_values)
    return;
  uint32 pairs[kTiles][2], p[Product::kHeadWords];
#pragma unroll
  for (int32 tile = 0; tile < kTiles; ++tile)
#pragma unroll
    for (int32 i = 0; i < 2; ++i)
      pairs[tile][i] = Pair<T>::make(weights[tile][2 * i], weights[tile][2 * i + 1]).bits;
  Product::arrange(p, pairs);
  // Most pieces of few heads have no greater score than those before. A decay that is NaN is not 1.
  bool decay = false;
#pragma unroll
  for (int32 head = 0; head < Product::kThreadHeads; ++head)
    decay = decay || decays[head] != 1;
  if (any_lane(decay))
#pragma unroll
    for (int32 tile = 0; tile < DecodeState<Team>::kTiles; ++tile)
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        if (Product::head_of(i) < Product::kThreadHeads)
          state.o[tile][i] *= decays[Product::head_of(i)];
  const uint32 column = values + at.first_column * 2 + Product::value_offset(at.lane, Team::kVPitch);
#pragma unroll
  for (int32 tile = 0; tile < DecodeState<Team>::kTiles; tile += kTiles) {
    uint32 v[4];
    ldmatrix_x4_transposed(v, column + tile / kTiles * 2 * kChunkBytes);
#pragma unroll
    for (int32 i = 0; i < kTiles; ++i)
      Product::template multiply<T>(state.o[tile + i], p, v + i * Product::kItemWords);
  }
}

// The keys that the query attends in a branch: [first, past) of its pieces. Of a selected block it attends no token
// behind its own.
struct BranchKeys {
  int32 pieces;
  int32 first;
  int32 past;
  bool is_compressed;
  bool is_selected;
};

// Attends the pieces of the ring, one branch after the other.
template <typename Team> struct DecodeAttention {
  NSA_DEVICE DecodeAttention(const DecodeRing<Team> &ring, float scale) : ring(ring), scale(scale) {}

  // Attends the next pieces of the ring, which are one branch. Each warp keeps its last piece until `release`.
  // `keep(s, tops, piece, whole)` sees the scores of a piece, their maxima, and whether the query attends all its keys.
  template <typename Keep> NSA_DEVICE void attend(const BranchKeys &keys, unsigned char *queries_at, const Keep &keep) {
    state.clear();
    first.piece += pieces;
    pieces = keys.pieces;
    if (attends())
      queries.load(queries_at, at);
#pragma unroll 1
    for (int32 piece = at.key_warp; piece < pieces; piece += Team::kKeyWarps) {
      const RingPlace<Team> place = {first.piece + piece};
      const int32 stage = place.stage();
      ring.take(place);
      PieceScores<Team> s;
      score_keys(s, queries, shared_address(ring.memory.keys(stage)), at.lane);
      HeadNumbers<Team> tops;
      find_tops<Team>(tops, s);
      const bool whole = attends_whole(keys, piece * kPieceKeys);
      keep(s, tops, piece, whole);
      if (!whole) {
        hide(s, keys, piece * kPieceKeys);
        find_tops<Team>(tops, s);
      }
      add_piece(state, s, tops, shared_address(ring.memory.values(stage)), at, scale,
                Team::kHasCmp || !keys.is_compressed);
      last = place;
      if (piece + Team::kKeyWarps < pieces)
        ring.give_back(place);
    }
  }

  // Whether the warp attends a piece of the branch.
  NSA_DEVICE bool attends() const { return at.key_warp < pieces; }
  // The number of key warps that have a piece of the branch.
  NSA_DEVICE int32 holders() const { return min(pieces, Team::kKeyWarps); }
  // The memory of the last piece of the warp, which no longer needs it, and the memory of the last pieces of all warps
  // in the order of the stream.
  NSA_DEVICE unsigned char *own_memory() const { return ring.memory.keys(last.stage()); }
  NSA_DEVICE unsigned char *piece_memory(int32 number) const {
    return ring.memory.keys(RingPlace<Team>{first.piece + pieces - holders() + number}.stage());
  }
  // The warp needs the memory of its last piece no longer.
  NSA_DEVICE void release() const {
    if (attends())
      ring.give_back(last);
  }

  const DecodeRing<Team> &ring;
  const float scale;
  const WarpPlace<Team> at;
  DecodeQueries<Team> queries;
  DecodeState<Team> state;
  int32 pieces = 0; // of the branch

private:
  // Whether the query attends all 16 keys from `first` on, without a look at each. A piece of a selected block is
  // attended whole if its last token is.
  NSA_DEVICE bool attends_whole(const BranchKeys &keys, int32 first) const {
    if (first < keys.first || first + kPieceKeys > keys.past)
      return false;
    if (!keys.is_selected)
      return true;
    return Team::Facts::kSelBlock % kPieceKeys == 0 &&
           ring.selected_token(first + kPieceKeys - 1) <= ring.place.position;
  }

  // Makes the scores of keys that the query does not attend -inf.
  NSA_DEVICE void hide(PieceScores<Team> &s, const BranchKeys &keys, int32 first) const {
    using Product = typename Team::Product;
#pragma unroll
    for (int32 tile = 0; tile < kPieceKeys / Product::kItems; ++tile) {
      const int32 nearer = first + tile * Product::kItems + Product::item(0, at.lane);
      int32 token = 0;
      if (keys.is_selected && nearer < keys.past)
        token = ring.selected_token(nearer);
#pragma unroll
      for (int32 item = 0; item < 2; ++item) {
        const int32 key = nearer + item * Product::kItemDistance;
        bool attended = key >= keys.first && key < keys.past;
        if (keys.is_selected) {
          // Where blocks have a multiple of so many keys, both keys of the thread lie in one.
          constexpr bool kApart = Team::Facts::kSelBlock % (2 * Product::kItemDistance) != 0;
          const bool alone = kApart && item == 1 && attended;
          const int32 own = alone ? ring.selected_token(key) : token + item * Product::kItemDistance;
          attended = attended && own <= ring.place.position;
        }
#pragma unroll
        for (int32 head = 0; head < Product::kThreadHeads; ++head) {
          float &score = s[tile][Product::element(head, item)];
          score = attended ? score : -infinity();
        }
      }
    }
  }

  RingPlace<Team> first; // of the first piece of the branch
  RingPlace<Team> last;  // of the warp's last piece
};

} // namespace nsa
