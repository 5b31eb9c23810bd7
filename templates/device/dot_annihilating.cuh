// dot_annihilating(a, b, acc): dot(a, b, acc) in which a zero of `a` contributes zero whatever stands in `b`, NaN and
// Inf included. Every other element of `a` contributes as ever. For 16-bit operands; floats are in dot_float.cuh.
//
// Matrix units know only 0 * NaN = NaN. So the block looks once whether `b` is finite, and then takes the plain
// product; if it is not, each product is taken or left by a loop of fused multiply-adds. All threads of the block take
// part.
#pragma once

#include "dot.cuh"
#include "non_finite.cuh"

namespace nsa {

// Row or, transposed, column `depth` of the right operand, in the thread's two columns of a column tile.
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

// Rare, and a cold start compiles it, so it is kept short: plain loops over the column tiles and the depth. Registers
// have no run-time index. So the accumulator's column tiles stand in a ring that turns by one a step, of the left
// operand's one is chosen, and the lane that holds the element hands it to the row's others.
template <bool kTransposed, typename T, int32 kRows, int32 kCols, int32 kDepth, int32 kWarps, int32 kRightRows,
          int32 kRightCols>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> dot_non_finite(const Fragment<T, kRows, kDepth, kWarps> &a,
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
          const Pair<T> taken{left == 0 ? 0 : right.bits};
#pragma unroll
          for (int32 index = 0; index < 2; ++index) {
            float &sum = sums[slab][half].values[index];
            sum = fmaf(left, to_float(taken.get(index)), sum);
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

// `where`, the same for all threads of the block: elsewhere no zero meets an element that is not finite, or it does not
// matter.
template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_annihilating(const A &a, B b, const Acc &acc, bool where = true) {
  if (where && any_non_finite<Acc::kWarps * kWarpSize>(b))
    return dot_non_finite<false>(a, b, acc);
  return dot(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_transposed_annihilating(const A &a, B b, const Acc &acc, bool where = true) {
  if (where && any_non_finite<Acc::kWarps * kWarpSize>(b))
    return dot_non_finite<true>(a, b, acc);
  return dot_transposed(a, b, acc);
}

} // namespace nsa
