// dot and dot_transposed (dot.cuh) for float operands: fused multiply-adds in full float precision, never TF32.
// The accumulator has the layout of mma.sync, so maps and reductions are the same for all types. `a` is a fragment or
// a shared tile, `b` a shared tile that the block has synchronised on.
#pragma once

#include "fragment.cuh"
#include "ptx_warp.cuh"
#include "shared_tile.cuh"

namespace nsa {

inline constexpr int32 kFloatDepth = 4; // one 16-byte chunk of floats

// Elements depth .. depth + 3 of the thread's row.
template <int32 kRows, int32 kDepth, typename Acc>
NSA_DEVICE void load_left(float (&a)[kFloatDepth], SharedTile<float, kRows, kDepth> tile, const Acc &, int32 slab,
                          int32 half, int32 depth) {
  const Chunk chunk = tile.chunk(Acc::row(slab, half), depth / kFloatDepth);
#pragma unroll
  for (int32 i = 0; i < kFloatDepth; ++i)
    a[i] = __uint_as_float(chunk.words[i]);
}

// The four lanes of a row hold two neighbouring columns each.
template <int32 kRows, int32 kDepth, int32 kWarps, typename Acc>
NSA_DEVICE void load_left(float (&a)[kFloatDepth], const Fragment<float, kRows, kDepth, kWarps> &fragment, const Acc &,
                          int32 slab, int32 half, int32 depth) {
  const int32 row_lane = static_cast<int32>(threadIdx.x) & (kWarpSize - 4);
#pragma unroll
  for (int32 i = 0; i < kFloatDepth; ++i)
    a[i] = shuffle(fragment.get(slab, depth / kTileColumns, half, i % 2), row_lane + (depth + i) % kTileColumns / 2);
}

template <bool kAnnihilating> NSA_DEVICE float multiply_add(float a, float b, float c) {
  return kAnnihilating && a == 0 ? c : fmaf(a, b, c);
}

template <bool kTransposed, bool kAnnihilating, typename A, int32 kRows, int32 kCols, int32 kWarps, int32 kRightRows,
          int32 kRightCols>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> dot_float(const A &a, SharedTile<float, kRightRows, kRightCols> b,
                                                           Fragment<float, kRows, kCols, kWarps> acc) {
  using Acc = Fragment<float, kRows, kCols, kWarps>;
  constexpr int32 kDepth = kTransposed ? kRightCols : kRightRows;
  static_assert((kTransposed ? kRightRows : kRightCols) == kCols, "the right operand's outer size agrees");
  static_assert(A::kRows == kRows && A::kCols == kDepth, "the left operand's sizes agree");
  // A fragment is indexed by constants only; a shared tile needs no more than the loads of one step in flight.
  constexpr int32 kUnroll = kIsSharedTile<A> ? 2 : kDepth / kFloatDepth;
#pragma unroll kUnroll
  for (int32 depth = 0; depth < kDepth; depth += kFloatDepth) {
    float left[Acc::kSlabs][2][kFloatDepth];
#pragma unroll
    for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
        load_left(left[slab][half], a, acc, slab, half, depth);
#pragma unroll
    for (int32 tile = 0; tile < Acc::kTiles; ++tile) {
      float right[2][kFloatDepth]; // [column][depth]
      if constexpr (kTransposed) {
#pragma unroll
        for (int32 index = 0; index < 2; ++index) {
          const Chunk chunk = b.chunk(Acc::column(tile, index), depth / kFloatDepth);
#pragma unroll
          for (int32 i = 0; i < kFloatDepth; ++i)
            right[index][i] = __uint_as_float(chunk.words[i]);
        }
      } else {
#pragma unroll
        for (int32 i = 0; i < kFloatDepth; ++i) {
          const Pair<float> pair = *reinterpret_cast<const Pair<float> *>(b.element(depth + i, Acc::column(tile, 0)));
          right[0][i] = pair.get(0);
          right[1][i] = pair.get(1);
        }
      }
#pragma unroll
      for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
        for (int32 half = 0; half < 2; ++half)
#pragma unroll
          for (int32 index = 0; index < 2; ++index) {
            float &element = acc.pairs[slab][tile][half].values[index];
#pragma unroll
            for (int32 i = 0; i < kFloatDepth; ++i)
              element = multiply_add<kAnnihilating>(left[slab][half][i], right[index][i], element);
          }
    }
  }
  return acc;
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot(const A &a, B b, const Acc &acc) {
  return dot_float<false, false>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot_annihilating(const A &a, B b, const Acc &acc) {
  return dot_float<false, true>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot_transposed(const A &a, B b, const Acc &acc) {
  return dot_float<true, false>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot_transposed_annihilating(const A &a, B b, const Acc &acc) {
  return dot_float<true, true>(a, b, acc);
}

} // namespace nsa
