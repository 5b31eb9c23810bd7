// Attention of the heads of a group over a tile of keys in shared memory, with the online softmax of
// templates/tile/library/softmax.tile. Each warp makes the scores of eight keys for all heads. The warps agree on the
// maxima through shared memory, and put their weights there. Then each warp makes an eighth of the columns of the
// result from all keys. So the result is not added up over the warps, and takes few registers.
#pragma once

#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_matrix.cuh"
#include "ptx_warp.cuh"
#include "sm90/decode_ring.cuh"

namespace nsa {

// The queries as left operands. They stay in registers if there are few: with eleven warps a thread has 168 registers,
// and each tile of heads needs registers for scores and results too.
template <typename Shape> struct DecodeQueries {
  static constexpr int32 kSteps = Shape::kQkPad / 16;
  static constexpr bool kHeld = Shape::kHeadWarps == 1 && Shape::kHeadTiles * Shape::kHeadTiles * kSteps <= 12;
  static constexpr int32 kHeldTiles = kHeld ? Shape::kHeadTiles : 1;
  static constexpr int32 kHeldSteps = kHeld ? kSteps : 1;

  NSA_DEVICE void load(unsigned char *queries) {
    const int32 lane = threadIdx.x % kWarpSize;
    address = shared_address(queries) + lane % 16 * Shape::kKPitch + lane / 16 * kChunkBytes;
    if constexpr (kHeld)
#pragma unroll
      for (int32 tile = 0; tile < kHeldTiles; ++tile)
#pragma unroll
        for (int32 step = 0; step < kHeldSteps; ++step)
          ldmatrix_x4(held[tile][step], at(tile, step));
  }

  NSA_DEVICE void get(uint32 (&operand)[4], int32 tile, int32 step) const {
    if constexpr (kHeld) {
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        operand[i] = held[tile][step][i];
    } else {
      ldmatrix_x4(operand, at(tile, step));
    }
  }

private:
  NSA_DEVICE uint32 at(int32 tile, int32 step) const {
    return address + tile * kSlabRows * Shape::kKPitch + step * 2 * kChunkBytes;
  }

  uint32 address;
  uint32 held[kHeldTiles][kHeldSteps][4];
};

// The state of a branch: the maxima of the rows that the thread holds (half 0 and 1 of each tile of heads), the sums of
// the warp's keys for its own tiles of heads, and the warp's columns of the result. All threads that hold a row have
// the same maximum, and each has a part of the sum.
template <typename Shape> struct DecodeState {
  NSA_DEVICE void clear() {
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
#pragma unroll
      for (int32 tile = 0; tile < Shape::kHeadTiles; ++tile)
        m[tile][half] = -infinity();
#pragma unroll
      for (int32 own = 0; own < Shape::kScoreTiles; ++own)
        l[own][half] = 0;
    }
#pragma unroll
    for (int32 tile = 0; tile < Shape::kHeadTiles; ++tile)
#pragma unroll
      for (int32 column = 0; column < Shape::kVTiles; ++column)
#pragma unroll
        for (int32 i = 0; i < 4; ++i)
          o[tile][column][i] = 0;
  }

  float m[Shape::kHeadTiles][2];
  float l[Shape::kScoreTiles][2];
  float o[Shape::kHeadTiles][Shape::kVTiles][4];
};

// Where a thread stands in a tile of scores.
template <typename Shape> struct ScorePlace {
  int32 warp = static_cast<int32>(threadIdx.x) / kWarpSize;
  int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  int32 key_warp = warp % Shape::kKeyWarps;
  int32 key = key_warp * 8 + lane % 4 * 2; // the thread holds this key and the next

  // The warp's first tile of heads: a constant if each warp has all, because registers have no index at run time.
  NSA_DEVICE int32 first_tile() const {
    return Shape::kHeadWarps == 1 ? 0 : warp / Shape::kKeyWarps * Shape::kScoreTiles;
  }

  // The value of the warp's own tile of heads, of the values of all tiles.
  NSA_DEVICE float of_own(const float (&values)[Shape::kHeadTiles][2], int32 own, int32 half) const {
    float value = values[own][half];
    if constexpr (Shape::kHeadWarps == 2) {
      const float upper = values[Shape::kScoreTiles + own][half];
      value = warp < Shape::kKeyWarps ? value : upper;
    }
    return value;
  }
};

// Scores of the warp's eight keys and its tiles of heads. A single tile of heads has two sums, because each product
// waits for the one before it.
template <typename Shape>
NSA_DEVICE void score_keys(float (&s)[Shape::kScoreTiles][4], const DecodeQueries<Shape> &queries, uint32 keys,
                           const ScorePlace<Shape> &at) {
  using T = typename Shape::Element;
  const uint32 row = keys + (at.key_warp * 8 + at.lane % 8) * Shape::kKPitch + at.lane / 8 * kChunkBytes;
  float odd[Shape::kScoreTiles][4];
#pragma unroll
  for (int32 tile = 0; tile < Shape::kScoreTiles; ++tile)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      s[tile][i] = odd[tile][i] = 0;
#pragma unroll
  for (int32 step = 0; step < DecodeQueries<Shape>::kSteps; step += 2) {
    uint32 k[4];
    ldmatrix_x4(k, row + step * 2 * kChunkBytes);
#pragma unroll
    for (int32 tile = 0; tile < Shape::kScoreTiles; ++tile) {
      uint32 q[4];
      queries.get(q, at.first_tile() + tile, step);
      mma_m16n8k16(T{}, s[tile], q, k[0], k[1]);
      queries.get(q, at.first_tile() + tile, step + 1);
      mma_m16n8k16(T{}, odd[tile], q, k[2], k[3]);
    }
  }
#pragma unroll
  for (int32 tile = 0; tile < Shape::kScoreTiles; ++tile)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      s[tile][i] += odd[tile][i];
}

// Adds the products of the weights in shared memory and the warp's columns of the values.
template <typename Shape>
NSA_DEVICE void add_values(DecodeState<Shape> &state, const DecodeMemory<Shape> &memory, uint32 values) {
  using T = typename Shape::Element;
  const int32 warp = static_cast<int32>(threadIdx.x) / kWarpSize;
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  const uint32 weights = shared_address(memory.weights()) + lane % 16 * Shape::kWeightPitch + lane / 16 * kChunkBytes;
  const uint32 column = values + lane * Shape::kVPitch + warp * Shape::kVTiles * kChunkBytes;
#pragma unroll
  for (int32 key = 0; key < Shape::kKeyTile; key += 32) {
    uint32 p[2][Shape::kHeadTiles][4];
#pragma unroll
    for (int32 step = 0; step < 2; ++step)
#pragma unroll
      for (int32 tile = 0; tile < Shape::kHeadTiles; ++tile)
        ldmatrix_x4(p[step][tile], weights + tile * kSlabRows * Shape::kWeightPitch + (key + 16 * step) * 2);
#pragma unroll
    for (int32 i = 0; i < Shape::kVTiles; ++i) {
      uint32 v[4];
      ldmatrix_x4_transposed(v, column + key * Shape::kVPitch + i * kChunkBytes);
#pragma unroll
      for (int32 step = 0; step < 2; ++step)
#pragma unroll
        for (int32 tile = 0; tile < Shape::kHeadTiles; ++tile)
          mma_m16n8k16(T{}, state.o[tile][i], p[step][tile], v[2 * step], v[2 * step + 1]);
    }
  }
}

// Takes the scores `s`, in which keys that the query does not attend are -inf, and the values of a tile into the state.
// Without values only the maxima and the sums are of use.
template <typename Shape>
NSA_DEVICE void add_tile(DecodeState<Shape> &state, const float (&s)[Shape::kScoreTiles][4],
                         const DecodeMemory<Shape> &memory, int32 stage, const ScorePlace<Shape> &at, float scale,
                         bool with_values) {
  using T = typename Shape::Element;
  constexpr int32 kKeyWarps = Shape::kKeyWarps;
  float *tops = memory.floats(Shape::kTopsAt);
#pragma unroll
  for (int32 tile = 0; tile < Shape::kScoreTiles; ++tile)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      float top = max_number(s[tile][2 * half], s[tile][2 * half + 1]);
      top = max_number(top, shuffle_xor(top, 1));
      top = max_number(top, shuffle_xor(top, 2));
      if (at.lane % 4 == 0)
        tops[((at.first_tile() + tile) * kSlabRows + half * 8 + at.lane / 4) * kKeyWarps + at.key_warp] = top;
    }
  meet<Shape>();
  float minus_top[Shape::kHeadTiles][2]; // in base 2
  float decay[Shape::kHeadTiles][2];
#pragma unroll
  for (int32 tile = 0; tile < Shape::kHeadTiles; ++tile)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const float *row = tops + (tile * kSlabRows + half * 8 + at.lane / 4) * kKeyWarps;
      float top = state.m[tile][half];
#pragma unroll
      for (int32 i = 0; i < kKeyWarps; ++i)
        top = max_number(top, row[i]);
      // A row whose scores so far are all -inf takes its weights against 0 instead of -inf, and they are 0.
      const float finite = top == -infinity() ? 0 : top;
      minus_top[tile][half] = -(finite * scale);
      decay[tile][half] = exp2_approx((state.m[tile][half] - finite) * scale);
      state.m[tile][half] = top;
#pragma unroll
      for (int32 column = 0; column < Shape::kVTiles; ++column) {
        state.o[tile][column][2 * half] *= decay[tile][half];
        state.o[tile][column][2 * half + 1] *= decay[tile][half];
      }
    }
#pragma unroll
  for (int32 own = 0; own < Shape::kScoreTiles; ++own)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const float shift = at.of_own(minus_top, own, half);
      const float low = exp2_approx(fmaf(s[own][2 * half], scale, shift));
      const float high = exp2_approx(fmaf(s[own][2 * half + 1], scale, shift));
      state.l[own][half] = fmaf(state.l[own][half], at.of_own(decay, own, half), low + high);
      if (with_values) {
        const int32 head = (at.first_tile() + own) * kSlabRows + half * 8 + at.lane / 4;
        *reinterpret_cast<uint32 *>(memory.weights() + head * Shape::kWeightPitch + 2 * at.key) =
            Pair<T>::make(low, high).bits;
      }
    }
  meet<Shape>(); // weights are there, and all have read the maxima, which the next tile replaces
  if (with_values)
    add_values(state, memory, shared_address(memory.values(stage)));
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
template <typename Shape> struct DecodeAttention {
  NSA_DEVICE DecodeAttention(const DecodeRing<Shape> &ring, float scale) : ring(ring), scale(scale) {}

  // Attends the next tiles of the ring, which are one branch. `keep(s, tile)` sees the scores of a tile.
  template <typename Keep> NSA_DEVICE void attend(const BranchKeys &keys, unsigned char *queries_at, const Keep &keep) {
    state.clear();
    if (keys.tiles > 0)
      queries.load(queries_at);
#pragma unroll 1
    for (int32 tile = 0; tile < keys.tiles; ++tile) {
      ring.take(place, keys.is_compressed, tile);
      float s[Shape::kScoreTiles][4];
      score_keys(s, queries, shared_address(ring.memory.keys(place.stage)), at);
      keep(s, tile);
      const int32 first = tile * Shape::kKeyTile + at.key;
      int32 token = 0;
      if (keys.is_selected && first < keys.past)
        token = ring.selected_token(first);
#pragma unroll
      for (int32 index = 0; index < 2; ++index) {
        const int32 key = first + index;
        bool attended = key >= keys.first && key < keys.past;
        if (keys.is_selected) {
          // Where blocks have an even number of keys, both keys of the thread lie in one.
          const bool alone = Shape::Facts::kSelBlock % 2 != 0 && index == 1 && attended;
          attended = attended && (alone ? ring.selected_token(key) : token + index) <= ring.place.position;
        }
#pragma unroll
        for (int32 row = 0; row < Shape::kScoreTiles; ++row) {
          s[row][index] = attended ? s[row][index] : -infinity();
          s[row][2 + index] = attended ? s[row][2 + index] : -infinity();
        }
      }
      add_tile(state, s, ring.memory, place.stage, at, scale, Shape::kHasCmp || !keys.is_compressed);
      ring.give_back(place);
      place.advance();
    }
  }

  const DecodeRing<Shape> &ring;
  const float scale;
  const ScorePlace<Shape> at;
  DecodeQueries<Shape> queries;
  DecodeState<Shape> state;
  RingPlace<Shape> place; // of the next tile
};

// Keeps the scores of a tile of compressed keys for the selection.
template <typename Shape>
NSA_DEVICE void keep_scores(const float (&s)[Shape::kScoreTiles][4], const DecodeMemory<Shape> &memory,
                            const ScorePlace<Shape> &at, int32 first, int32 keys) {
  float *scores = memory.floats(Shape::kScoresAt);
  const int32 key = first + at.key;
#pragma unroll
  for (int32 tile = 0; tile < Shape::kScoreTiles; ++tile)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const int32 head = (at.first_tile() + tile) * kSlabRows + half * 8 + at.lane / 4;
#pragma unroll
      for (int32 index = 0; index < 2; ++index)
        if (head < Shape::kGroup && key + index < keys)
          scores[head * Shape::kScorePitch + key + index] = s[tile][2 * half + index];
    }
}

} // namespace nsa
