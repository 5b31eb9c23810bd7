// Attention of the heads of a group over pieces of 16 keys in shared memory, with the online softmax of
// templates/tile/library/softmax.tile. Each warp attends its pieces for 16 heads, and keeps the maxima, the sums and
// the result of its keys in registers. The warps of a team wait for each other at the end of a branch, where
// decode_exchange.cuh adds up what they have.
#pragma once

#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_matrix.cuh"
#include "ptx_warp.cuh"
#include "sm90/decode_ring.cuh"

namespace nsa {

// Which heads, pieces and columns of V a warp takes, and which of them the thread holds. A product with 16 rows leaves
// a thread two of them, `lane / 4` and the eighth behind it.
template <typename Team> struct WarpPlace {
  int32 warp = Team::thread() / kWarpSize;
  int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  int32 first_head = warp % Team::kHeadTiles * kSlabRows;
  int32 key_warp = warp / Team::kHeadTiles % Team::kKeyWarps;
  int32 column_warp = warp / (Team::kHeadTiles * Team::kKeyWarps);
  int32 first_column = column_warp * Team::kColumns;

  NSA_DEVICE int32 head(int32 half) const { return first_head + half * 8 + lane / 4; }
};

// The queries of the warp's heads as left operands. As many steps of the product as fit stay in registers: a thread has
// 128 of them in a block of 16 warps. The window's team loads its queries for each piece, because it has few pieces.
template <typename Team> struct DecodeQueries {
  static constexpr int32 kSteps = Team::kQkPad / 16;
  static constexpr int32 kRegisters = (Team::kIsWindow ? 0 : 48) - Team::kColumns / 2;
  static constexpr int32 kMostHeld = kRegisters < 4 ? 0 : kRegisters / 4;
  static constexpr int32 kHeld = kMostHeld < kSteps ? kMostHeld : kSteps;

  NSA_DEVICE void load(unsigned char *queries, const WarpPlace<Team> &at) {
    address = shared_address(queries) + (at.first_head + at.lane % 16) * Team::kKPitch + at.lane / 16 * kChunkBytes;
#pragma unroll
    for (int32 step = 0; step < kHeld; ++step)
      ldmatrix_x4(held[step], address + step * 2 * kChunkBytes);
  }

  NSA_DEVICE void get(uint32 (&operand)[4], int32 step) const {
    if (step >= kHeld)
      return ldmatrix_x4(operand, address + step * 2 * kChunkBytes);
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      operand[i] = held[step][i];
  }

private:
  uint32 address;
  uint32 held[kHeld > 0 ? kHeld : 1][4];
};

// Scores of 16 keys: two products of eight keys each.
using PieceScores = float[2][4];

// The state of a branch: the maxima of the thread's two heads over the warp's keys, the thread's part of their sums,
// and the warp's columns of the result.
template <typename Team> struct DecodeState {
  static constexpr int32 kTiles = Team::kColumns / kTileColumns;

  NSA_DEVICE void clear() {
    m[0] = m[1] = -infinity();
    l[0] = l[1] = 0;
#pragma unroll
    for (int32 tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        o[tile][i] = 0;
  }

  float m[2];
  float l[2];
  float o[kTiles][4];
};

// Makes the scores of the 16 keys whose rows begin at `keys`. Each product waits for the one before it, so even and odd
// steps have sums of their own.
template <typename Team>
NSA_DEVICE void score_keys(PieceScores &s, const DecodeQueries<Team> &queries, uint32 keys, int32 lane) {
  using T = typename Team::Element;
  const uint32 row = keys + (lane / 16 * 8 + lane % 8) * Team::kKPitch + lane / 8 % 2 * kChunkBytes;
  PieceScores odd;
#pragma unroll
  for (int32 half = 0; half < 2; ++half)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      s[half][i] = odd[half][i] = 0;
#pragma unroll
  for (int32 step = 0; step < DecodeQueries<Team>::kSteps; step += 2) {
    uint32 k[2][4], q[2][4];
#pragma unroll
    for (int32 i = 0; i < 2; ++i) {
      ldmatrix_x4(k[i], row + (step + i) * 2 * kChunkBytes);
      queries.get(q[i], step + i);
    }
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      mma_m16n8k16(T{}, s[half], q[0], k[0][2 * half], k[0][2 * half + 1]);
      mma_m16n8k16(T{}, odd[half], q[1], k[1][2 * half], k[1][2 * half + 1]);
    }
  }
#pragma unroll
  for (int32 half = 0; half < 2; ++half)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      s[half][i] += odd[half][i];
}

// The maxima of the scores of a piece in the thread's two rows.
NSA_DEVICE void find_tops(float (&tops)[2], const PieceScores &s) {
#pragma unroll
  for (int32 row = 0; row < 2; ++row) {
    float top = max_number(max_number(s[0][2 * row], s[0][2 * row + 1]), max_number(s[1][2 * row], s[1][2 * row + 1]));
    top = max_number(top, shuffle_xor(top, 1));
    tops[row] = max_number(top, shuffle_xor(top, 2));
  }
}

// Takes the scores `s`, in which keys that the query does not attend are -inf, their maxima, and the values of the 16
// keys whose rows begin at `values` into the state. Without values only the maxima and the sums are of use.
template <typename Team>
NSA_DEVICE void add_piece(DecodeState<Team> &state, const PieceScores &s, const float (&tops)[2], uint32 values,
                          const WarpPlace<Team> &at, float scale, bool with_values) {
  using T = typename Team::Element;
  uint32 p[4]; // the weights as a left operand
  float decays[2];
#pragma unroll
  for (int32 row = 0; row < 2; ++row) {
    const float top = max_number(tops[row], state.m[row]);
    // A row whose scores so far are all -inf takes its weights against 0 instead of -inf, and they are 0.
    const float finite = top == -infinity() ? 0 : top;
    decays[row] = exp2_approx((state.m[row] - finite) * scale);
    state.m[row] = top;
    state.l[row] *= decays[row];
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const float low = exp2_approx(fmaf(s[half][2 * row], scale, -(finite * scale)));
      const float high = exp2_approx(fmaf(s[half][2 * row + 1], scale, -(finite * scale)));
      state.l[row] += low + high;
      p[2 * half + row] = Pair<T>::make(low, high).bits;
    }
  }
  if (!with_values)
    return;
  // Most pieces of few heads have no greater score than those before. A decay that is NaN is not 1.
  if (any_lane(decays[0] != 1 || decays[1] != 1))
#pragma unroll
    for (int32 tile = 0; tile < DecodeState<Team>::kTiles; ++tile)
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        state.o[tile][i] *= decays[i / 2];
  const uint32 column = values + at.lane % 16 * Team::kVPitch + at.first_column * 2 + at.lane / 16 * kChunkBytes;
#pragma unroll
  for (int32 tile = 0; tile < DecodeState<Team>::kTiles; tile += 2) {
    uint32 v[4];
    ldmatrix_x4_transposed(v, column + tile * kChunkBytes);
    mma_m16n8k16(T{}, state.o[tile], p, v[0], v[1]);
    mma_m16n8k16(T{}, state.o[tile + 1], p, v[2], v[3]);
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
      PieceScores s;
      score_keys(s, queries, shared_address(ring.memory.keys(stage)), at.lane);
      float tops[2];
      find_tops(tops, s);
      const bool whole = attends_whole(keys, piece * kPieceKeys);
      keep(s, tops, piece, whole);
      if (!whole) {
        hide(s, keys, piece * kPieceKeys);
        find_tops(tops, s);
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
  NSA_DEVICE void hide(PieceScores &s, const BranchKeys &keys, int32 first) const {
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const int32 pair = first + half * 8 + at.lane % 4 * 2;
      int32 token = 0;
      if (keys.is_selected && pair < keys.past)
        token = ring.selected_token(pair);
#pragma unroll
      for (int32 index = 0; index < 2; ++index) {
        const int32 key = pair + index;
        bool attended = key >= keys.first && key < keys.past;
        if (keys.is_selected) {
          // Where blocks have an even number of keys, both keys of the pair lie in one.
          const bool alone = Team::Facts::kSelBlock % 2 != 0 && index == 1 && attended;
          attended = attended && (alone ? ring.selected_token(key) : token + index) <= ring.place.position;
        }
        s[half][index] = attended ? s[half][index] : -infinity();
        s[half][2 + index] = attended ? s[half][2 + index] : -infinity();
      }
    }
  }

  RingPlace<Team> first; // of the first piece of the branch
  RingPlace<Team> last;  // of the warp's last piece
};

} // namespace nsa
