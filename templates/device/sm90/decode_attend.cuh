// Attention of the heads of a group over tiles of keys in shared memory, with the online softmax of
// templates/tile/library/softmax.tile. Each warp attends 16 keys of a tile for 16 heads, and keeps the maxima, the sums
// and the result of its keys in registers. The warps of a block wait for each other at the end of a branch, where
// decode_exchange.cuh adds up what they have, and at the tile that gets a new compressed row.
#pragma once

#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_matrix.cuh"
#include "ptx_warp.cuh"
#include "sm90/decode_ring.cuh"

namespace nsa {

// Which heads, keys and columns of V a warp takes, and which of them the thread holds. A product with 16 rows leaves a
// thread two of them, `lane / 4` and the eighth behind it.
template <typename Team> struct WarpPlace {
  int32 warp = Team::thread() / kWarpSize;
  int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  int32 first_head = warp % Team::kHeadTiles * kSlabRows;
  int32 key_warp = warp / Team::kHeadTiles % Team::kKeyWarps;
  int32 column_warp = warp / (Team::kHeadTiles * Team::kKeyWarps);
  int32 first_column = column_warp * Team::kColumns;

  NSA_DEVICE int32 head(int32 half) const { return first_head + half * 8 + lane / 4; }
};

// The queries of the warp's heads as left operands. As many steps of the product as fit stay in registers: a block of
// 16 warps has 128 registers for a thread, and one of 11 warps has 168. The window's team loads its queries for each
// tile, because it has few tiles.
template <typename Team> struct DecodeQueries {
  static constexpr int32 kSteps = Team::kQkPad / 16;
  static constexpr int32 kRegisters = (Team::kIsWindow ? 0 : Team::kHasWindowTeam ? 48 : 64) - Team::kColumns / 2;
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
  static constexpr int32 kTiles = Team::kColumns / 8;

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

// Takes the scores `s`, in which keys that the query does not attend are -inf, and the values of the 16 keys whose rows
// begin at `values` into the state. Without values only the maxima and the sums are of use.
template <typename Team>
NSA_DEVICE void add_piece(DecodeState<Team> &state, PieceScores &s, uint32 values, const WarpPlace<Team> &at,
                          float scale, bool with_values) {
  using T = typename Team::Element;
  uint32 p[4]; // the weights as a left operand
#pragma unroll
  for (int32 row = 0; row < 2; ++row) {
    float top = max_number(max_number(s[0][2 * row], s[0][2 * row + 1]), max_number(s[1][2 * row], s[1][2 * row + 1]));
    top = max_number(top, shuffle_xor(top, 1));
    top = max_number(max_number(top, shuffle_xor(top, 2)), state.m[row]);
    // A row whose scores so far are all -inf takes its weights against 0 instead of -inf, and they are 0.
    const float finite = top == -infinity() ? 0 : top;
    const float decay = exp2_approx((state.m[row] - finite) * scale);
    state.m[row] = top;
    state.l[row] *= decay;
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const float low = exp2_approx(fmaf(s[half][2 * row], scale, -(finite * scale)));
      const float high = exp2_approx(fmaf(s[half][2 * row + 1], scale, -(finite * scale)));
      state.l[row] += low + high;
      p[2 * half + row] = Pair<T>::make(low, high).bits;
    }
#pragma unroll
    for (int32 tile = 0; tile < DecodeState<Team>::kTiles; ++tile) {
      state.o[tile][2 * row] *= decay;
      state.o[tile][2 * row + 1] *= decay;
    }
  }
  if (!with_values)
    return;
  const uint32 column = values + at.lane % 16 * Team::kVPitch + at.first_column * 2 + at.lane / 16 * kChunkBytes;
#pragma unroll
  for (int32 tile = 0; tile < DecodeState<Team>::kTiles; tile += 2) {
    uint32 v[4];
    ldmatrix_x4_transposed(v, column + tile * kChunkBytes);
    mma_m16n8k16(T{}, state.o[tile], p, v[0], v[1]);
    mma_m16n8k16(T{}, state.o[tile + 1], p, v[2], v[3]);
  }
}

// The keys that the query attends in a branch: [first, past) of its tiles. Of a selected block it attends no token
// behind its own.
struct BranchKeys {
  int32 tiles;
  int32 first;
  int32 past;
  bool is_compressed;
  bool is_selected;
};

// Attends the tiles of the ring, one branch after the other.
template <typename Team> struct DecodeAttention {
  NSA_DEVICE DecodeAttention(const DecodeRing<Team> &ring, float scale) : ring(ring), scale(scale) {}

  // Attends the next tiles of the ring, which are one branch, and keeps the last of them until `release`.
  // `keep(s, key)` sees the scores of 16 keys from `key` on.
  template <typename Keep> NSA_DEVICE void attend(const BranchKeys &keys, unsigned char *queries_at, const Keep &keep) {
    state.clear();
    tiles = keys.tiles;
    if (tiles > 0)
      queries.load(queries_at, at);
#pragma unroll 1
    for (int32 tile = 0; tile < tiles; ++tile) {
      if (tile > 0)
        give_back();
      ring.take(place, keys.is_compressed, tile);
#pragma unroll 1
      for (int32 piece = at.key_warp; piece < Team::kPieces; piece += Team::kKeyWarps) {
        const int32 first = tile * Team::kKeyTile + piece * kPieceKeys;
        if (first >= keys.past)
          break;
        PieceScores s;
        score_keys(s, queries, shared_address(ring.memory.keys(place.stage)) + piece * kPieceKeys * Team::kKPitch,
                   at.lane);
        keep(s, first);
        hide(s, keys, first);
        add_piece(state, s, shared_address(ring.memory.values(place.stage)) + piece * kPieceKeys * Team::kVPitch, at,
                  scale, Team::kHasCmp || !keys.is_compressed);
      }
    }
  }

  // The memory of the last tile, which is no longer needed when all warps have attended it. There must be one.
  NSA_DEVICE unsigned char *last_tile() const { return ring.memory.keys(place.stage); }
  // The warp needs the memory of the last tile no longer.
  NSA_DEVICE void release() {
    if (tiles > 0)
      give_back();
  }

  const DecodeRing<Team> &ring;
  const float scale;
  const WarpPlace<Team> at;
  DecodeQueries<Team> queries;
  DecodeState<Team> state;
  int32 tiles = 0; // of the branch

private:
  NSA_DEVICE void give_back() {
    ring.give_back(place);
    place.advance();
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

  RingPlace<Team> place; // of the tile in hand, or of the next
};

// Keeps the scores of 16 compressed keys from `first` on for the selection.
template <typename Team>
NSA_DEVICE void keep_scores(const PieceScores &s, const DecodeMemory<Team> &memory, const WarpPlace<Team> &at,
                            int32 first, int32 keys) {
  if (at.column_warp != 0)
    return;
  float *scores = memory.floats(Team::kScoresAt);
#pragma unroll
  for (int32 half = 0; half < 2; ++half)
#pragma unroll
    for (int32 row = 0; row < 2; ++row)
#pragma unroll
      for (int32 index = 0; index < 2; ++index) {
        const int32 key = first + half * 8 + at.lane % 4 * 2 + index;
        if (at.head(row) < Team::kGroup && key < keys)
          scores[at.head(row) * Team::kScorePitch + key] = s[half][2 * row + index];
      }
}

} // namespace nsa
