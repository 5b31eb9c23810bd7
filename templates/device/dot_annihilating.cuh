// dot_annihilating(a, b, acc) computes the product dot(a, b, acc) with one difference: a zero of `a` times a NaN or an
// Inf of `b` is zero. The file dot_annihilating.cuh is for 16-bit operands, and dot_float.cuh is for floats.
//
// Matrix units compute 0 * NaN as NaN, so the block first checks whether `b` holds a NaN or an Inf. If `b` holds a NaN
// or an Inf, a loop multiplies the NaN and Inf elements with the non-zero elements of `a` and adds the products to the
// accumulator. The block then replaces the NaN and Inf elements of `b` with zeros and computes the plain product. If
// NaN and Inf in `b` meet only zeros of `a` in a sum, the sum is bit for bit the same as with a finite `b`. All threads
// of the block take part in dot_annihilating.
#pragma once

#include "dot.cuh"
#include "non_finite.cuh"

namespace nsa {

// Returns the two elements of the right operand `b` at depth `depth` in the two columns that the thread holds in column
// tile `tile`. The depth is the index over which the product sums: the row number of `b`, or the column number if `b`
// is transposed.
template <bool kTransposed, typename T, int32 kRows, int32 kCols>
NSA_DEVICE Pair<T> right_pair(SharedTile<T, kRows, kCols> b, int32 depth, int32 tile) {
  constexpr int32 kChunkElements = SharedTile<T, kRows, kCols>::kChunkElements;
  if constexpr (kTransposed) {
    const auto element = [&](int32 column) {
      return reinterpret_cast<const T *>(b.chunk(column, depth / kChunkElements).words)[depth % kChunkElements];
    };
    return Pair<T>::make(element(fragment_column(threadIdx.x, tile, 0)),
                         element(fragment_column(threadIdx.x, tile, 1)));
  } else {
    return {b.chunk(depth, tile).words[threadIdx.x % 4]};
  }
}

// Adds the products of the elements of `b` that are NaN or Inf with the elements of `a` that are not zero. NaN and Inf
// in `b` are rare, but the code of add_non_finite is compiled at each cold start. To keep the code short, the loops
// over the column tiles and the depth are not unrolled. Registers cannot be indexed at run time, so each iteration over
// the column tiles rotates the accumulator's column tiles in the registers by one. Bit masks, instead of an index,
// select the registers of `a` that hold the current depth. The lane that holds an element of `a` sends it by a shuffle
// to the other lanes that hold the row.
template <bool kTransposed, typename T, int32 kRows, int32 kCols, int32 kDepth, int32 kWarps, int32 kRightRows,
          int32 kRightCols>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> add_non_finite(const Fragment<T, kRows, kDepth, kWarps> &a,
                                                                SharedTile<T, kRightRows, kRightCols> b,
                                                                Fragment<float, kRows, kCols, kWarps> acc) {
  const int32 first_lane_of_row = threadIdx.x & (kWarpSize - 4);
#pragma unroll 1
  for (int32 tile = 0; tile < acc.kTiles; ++tile) {
    Pair<float> sums[acc.kSlabs][2];
#pragma unroll
    for (int32 slab = 0; slab < acc.kSlabs; ++slab)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
        sums[slab][half] = acc.pairs[slab][0][half];
#pragma unroll 1
    for (int32 depth = 0; depth < kDepth; ++depth) {
      const Pair<T> right = right_pair<kTransposed>(b, depth, tile);
      const uint32 wild = non_finite<T>(right.bits) >> 15;
#pragma unroll
      for (int32 slab = 0; slab < acc.kSlabs; ++slab)
#pragma unroll
        for (int32 half = 0; half < 2; ++half) {
          uint32 bits = 0;
#pragma unroll
          for (int32 place = 0; place < a.kTiles; ++place)
            bits |= a.pairs[slab][place][half].bits & (place == depth / kTileColumns ? 0xffffffffu : 0u);
          const Pair<T> pair{shuffle(bits, first_lane_of_row + depth % kTileColumns / 2)};
          const float left = to_float(pair.get(depth % 2));
          const uint32 taken = left == 0 ? 0 : wild;
#pragma unroll
          for (int32 index = 0; index < 2; ++index) {
            float &sum = sums[slab][half].values[index];
            sum = (taken >> 16 * index & 1) != 0 ? fmaf(left, to_float(right.get(index)), sum) : sum;
          }
        }
    }
#pragma unroll
    for (int32 slab = 0; slab < acc.kSlabs; ++slab)
#pragma unroll
      for (int32 half = 0; half < 2; ++half) {
#pragma unroll
        for (int32 next = 1; next < acc.kTiles; ++next)
          acc.pairs[slab][next - 1][half] = acc.pairs[slab][next][half];
        acc.pairs[slab][acc.kTiles - 1][half] = sums[slab][half];
      }
  }
  return acc;
}

// `where` has the same value in all threads of the block. Callers of dot_annihilating pass `where` = false for a
// product in which no zero can meet a NaN or an Inf, or in which the result of such a meeting does not matter.
template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_annihilating(const A &a, B b, const Acc &acc, bool where = true) {
  Acc sums = acc;
  if (where && any_non_finite<Acc::kWarps * kWarpSize>(b)) {
    sums = add_non_finite<false>(a, b, acc);
    clear_non_finite<Acc::kWarps * kWarpSize>(b);
  }
  return dot(a, b, sums);
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_transposed_annihilating(const A &a, B b, const Acc &acc, bool where = true) {
  Acc sums = acc;
  if (where && any_non_finite<Acc::kWarps * kWarpSize>(b)) {
    sums = add_non_finite<true>(a, b, acc);
    clear_non_finite<Acc::kWarps * kWarpSize>(b);
  }
  return dot_transposed(a, b, sums);
}

} // namespace nsa
