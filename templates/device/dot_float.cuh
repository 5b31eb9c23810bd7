// Implements the matrix products dot(a, b, acc) and dot_transposed(a, b, acc) of dot.cuh for float operands. Products
// of floats use fused multiply-adds in full float precision, never TF32. `a` is a fragment or a shared tile, and `b` is
// a shared tile. After the block has written a shared tile, the block must synchronise before a product reads the tile.
// The accumulator has the register layout of mma.sync, so the same elementwise functions and reductions work for all
// element types. In dot_annihilating and dot_transposed_annihilating a zero of `a` contributes zero even if it meets
// Inf or NaN in `b`, as in dot_annihilating.cuh. If the caller passes no argument `where`, dot_annihilating and
// dot_transposed_annihilating first check whether `b` holds any Inf or NaN.
#pragma once

#include "fragment.cuh"
#include "non_finite.cuh"
#include "ptx_warp.cuh"
#include "shared_tile.cuh"

namespace nsa {

inline constexpr int32 kFloatDepth = 4; // one 16-byte chunk of floats

template <bool kAnnihilating> NSA_DEVICE float multiply_add(float a, float b, float c) {
  return kAnnihilating && a == 0 ? c : fmaf(a, b, c);
}

// The thread's part of a left operand: four consecutive columns of each of the thread's rows.
template <int32 kSlabs> struct LeftFloats {
  float values[kSlabs][2][kFloatDepth]; // [slab][half][depth]
};

// The thread's part of a right operand: four consecutive elements along the depth of each of the thread's two columns
// in a column tile. The indices are right[column][depth].
using RightFloats = float[2][kFloatDepth];

// Loads from a right operand `b` that is stored as N x K.
template <int32 kRows, int32 kCols>
NSA_DEVICE void load_right_transposed(RightFloats &right, SharedTile<float, kRows, kCols> b, int32 depth, int32 tile) {
#pragma unroll
  for (int32 index = 0; index < 2; ++index) {
    const Chunk chunk = b.chunk(fragment_column(threadIdx.x, tile, index), depth / kFloatDepth);
#pragma unroll
    for (int32 i = 0; i < kFloatDepth; ++i)
      right[index][i] = __uint_as_float(chunk.words[i]);
  }
}

// Loads from a right operand `b` that is stored as K x N. A thread with lane = threadIdx.x % 4 reads two neighbouring
// columns, which are one half of the 16-byte chunk with the number 2 * tile + lane / 2. Shared tiles are swizzled: the
// XOR of a chunk's number and `bits` gives the chunk's place in memory, and the compiler knows `bits`. The lowest bit
// of `bits` is applied to lane / 2, so the thread needs one of two base addresses. The higher bits of `bits` are
// applied to 2 * tile, so they only change the constant offset in the load instruction.
template <int32 kRows, int32 kCols>
NSA_DEVICE void load_right(RightFloats &right, SharedTile<float, kRows, kCols> b, int32 depth, int32 tile) {
  constexpr int32 kChunksPerRow = SharedTile<float, kRows, kCols>::kChunksPerRow;
  const int32 lane = threadIdx.x % 4;
#pragma unroll
  for (int32 i = 0; i < kFloatDepth; ++i) {
    const int32 bits = swizzle(depth + i, kChunksPerRow);
    const unsigned char *of_lane = b.base + ((lane / 2) ^ (bits & 1)) * kChunkBytes + lane % 2 * sizeof(Pair<float>);
    const int32 chunk = (depth + i) * kChunksPerRow + ((2 * tile) ^ (bits & ~1));
    const Pair<float> pair = *reinterpret_cast<const Pair<float> *>(of_lane + chunk * kChunkBytes);
    right[0][i] = pair.get(0);
    right[1][i] = pair.get(1);
  }
}

// Multiplies four consecutive elements along the depth and adds the products to all of the thread's accumulators.
template <bool kTransposed, bool kAnnihilating, int32 kRows, int32 kCols, int32 kWarps, int32 kRightRows,
          int32 kRightCols>
NSA_DEVICE void multiply_chunk(Fragment<float, kRows, kCols, kWarps> &acc,
                               const LeftFloats<kRows / kSlabRows / kWarps> &left,
                               SharedTile<float, kRightRows, kRightCols> b, int32 depth) {
#pragma unroll
  for (int32 tile = 0; tile < acc.kTiles; ++tile) {
    RightFloats right;
    if constexpr (kTransposed)
      load_right_transposed(right, b, depth, tile);
    else
      load_right(right, b, depth, tile);
#pragma unroll
    for (int32 slab = 0; slab < acc.kSlabs; ++slab)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
#pragma unroll
        for (int32 index = 0; index < 2; ++index) {
          float &element = acc.pairs[slab][tile][half].values[index];
#pragma unroll
          for (int32 i = 0; i < kFloatDepth; ++i)
            element = multiply_add<kAnnihilating>(left.values[slab][half][i], right[index][i], element);
        }
  }
}

// Loads columns depth + part to depth + part + 3 of the left operand, in the thread's rows.
template <int32 kRows, int32 kDepth, typename Acc>
NSA_DEVICE void load_left(LeftFloats<Acc::kSlabs> &left, SharedTile<float, kRows, kDepth> a, const Acc &, int32 depth,
                          int32 part) {
#pragma unroll
  for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Chunk chunk = a.chunk(Acc::row(slab, half), (depth + part) / kFloatDepth);
#pragma unroll
      for (int32 i = 0; i < kFloatDepth; ++i)
        left.values[slab][half][i] = __uint_as_float(chunk.words[i]);
    }
}

// Loads four columns of a left operand that is a fragment. The caller has already shifted the fragment with move_down,
// so that column `depth` is the first column of column tile 0. Each of the four lanes that share a row holds two
// neighbouring columns of a column tile.
template <int32 kRows, int32 kDepth, int32 kWarps, typename Acc>
NSA_DEVICE void load_left(LeftFloats<Acc::kSlabs> &left, const Fragment<float, kRows, kDepth, kWarps> &a, const Acc &,
                          int32, int32 part) {
  const int32 row_lane = static_cast<int32>(threadIdx.x) & (kWarpSize - 4);
#pragma unroll
  for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
#pragma unroll
      for (int32 i = 0; i < kFloatDepth; ++i)
        left.values[slab][half][i] = shuffle(a.get(slab, 0, half, i % 2), row_lane + (part + i) / 2);
}

template <int32 kRows, int32 kDepth> NSA_DEVICE void move_down(SharedTile<float, kRows, kDepth> &) {}

// Registers cannot be indexed at run time, so each step of the loop in dot_float reads the first column tile of a left
// operand that is in registers. After each step, move_down shifts the column tiles of the left operand down by one.
// Compared with an unrolled loop, the loop that shifts the column tiles executes 1/16 more instructions, but has 1/8 of
// the code and takes 1/8 of the compile time.
template <int32 kRows, int32 kDepth, int32 kWarps>
NSA_DEVICE void move_down(Fragment<float, kRows, kDepth, kWarps> &a) {
#pragma unroll
  for (int32 slab = 0; slab < a.kSlabs; ++slab)
#pragma unroll
    for (int32 tile = 1; tile < a.kTiles; ++tile)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
        a.pairs[slab][tile - 1][half] = a.pairs[slab][tile][half];
}

template <bool kTransposed, bool kAnnihilating, typename A, int32 kRows, int32 kCols, int32 kWarps, int32 kRightRows,
          int32 kRightCols>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> dot_float(A a, SharedTile<float, kRightRows, kRightCols> b,
                                                           Fragment<float, kRows, kCols, kWarps> acc) {
  constexpr int32 kDepth = kTransposed ? kRightCols : kRightRows;
  static_assert((kTransposed ? kRightRows : kRightCols) == kCols, "the operands' outer sizes are the accumulator's");
  static_assert(A::kRows == kRows && A::kCols == kDepth, "the operands' inner sizes agree");
  static_assert(kDepth % kTileColumns == 0, "the inner size is a multiple of 8");
#pragma unroll 1
  for (int32 depth = 0; depth < kDepth; depth += kTileColumns) {
#pragma unroll
    for (int32 part = 0; part < kTileColumns; part += kFloatDepth) {
      LeftFloats<acc.kSlabs> left;
      load_left(left, a, acc, depth, part);
      if constexpr (kTransposed)
        multiply_chunk<true, kAnnihilating>(acc, left, b, depth + part);
      else
        multiply_chunk<false, kAnnihilating>(acc, left, b.from_row(depth), part);
    }
    move_down(a);
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
NSA_DEVICE Acc dot_annihilating(const A &a, B b, const Acc &acc, bool where) {
  return where ? dot_float<false, true>(a, b, acc) : dot_float<false, false>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot_annihilating(const A &a, B b, const Acc &acc) {
  return dot_annihilating(a, b, acc, any_non_finite<Acc::kWarps * kWarpSize>(b));
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot_transposed(const A &a, B b, const Acc &acc) {
  return dot_float<true, false>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot_transposed_annihilating(const A &a, B b, const Acc &acc, bool where) {
  return where ? dot_float<true, true>(a, b, acc) : dot_float<true, false>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kSameType<typename B::Element, float>
NSA_DEVICE Acc dot_transposed_annihilating(const A &a, B b, const Acc &acc) {
  return dot_transposed_annihilating(a, b, acc, any_non_finite<Acc::kWarps * kWarpSize>(b));
}

} // namespace nsa
