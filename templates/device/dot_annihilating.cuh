// dot_annihilating(a, b, acc): dot(a, b, acc) in which a zero of `a` contributes zero whatever stands in `b`, NaN and
// Inf included. Every other element of `a` contributes as ever. For 16-bit operands; floats are in dot_float.cuh.
//
// Matrix units know only 0 * NaN = NaN. So the block looks once whether `b` is finite, and then takes the plain
// product. If it is not, non-finite elements are multiplied as zeros, and four products of indicators find the elements
// that an Inf of either sign reaches through a left element that is not zero; NaN counts as both signs, and Inf - Inf =
// NaN. All threads of the block take part.
#pragma once

#include "dot.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"

namespace nsa {

// All 16-bit halves of a word at once: bit 15 of each half that is Inf or NaN. Only a full exponent carries into it.
template <typename T> NSA_DEVICE uint32 non_finite(uint32 halves) {
  constexpr uint32 kExponent = kSameType<T, bf16> ? 0x7f807f80u : 0x7c007c00u;
  constexpr uint32 kExponentUnit = kSameType<T, bf16> ? 0x00800080u : 0x04000400u;
  return ((halves & kExponent) + kExponentUnit) & 0x80008000u;
}

template <int32 kThreads, typename T, int32 kRows, int32 kCols>
NSA_DEVICE bool any_non_finite(SharedTile<T, kRows, kCols> tile) {
  constexpr int32 kChunksPerRow = SharedTile<T, kRows, kCols>::kChunksPerRow;
  uint32 found = 0;
#pragma unroll 4
  for (int32 index = threadIdx.x; index < kRows * kChunksPerRow; index += kThreads) {
    const Chunk chunk = tile.chunk(index / kChunksPerRow, index % kChunksPerRow);
#pragma unroll
    for (int32 word = 0; word < 4; ++word)
      found |= non_finite<T>(chunk.words[word]);
  }
  return any_thread(found != 0);
}

// 1 for each half that `holds`, else 0.
template <typename T, typename Predicate> NSA_DEVICE uint32 indicator(uint32 halves, const Predicate &holds) {
  const Pair<T> pair{halves};
  return Pair<T>::make(holds(to_float(pair.get(0))) ? 1.0f : 0.0f, holds(to_float(pair.get(1))) ? 1.0f : 0.0f).bits;
}

template <bool kTransposed, typename T, int32 kRows, int32 kCols, int32 kDepth, int32 kWarps, int32 kRightRows,
          int32 kRightCols>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> dot_non_finite(const Fragment<T, kRows, kDepth, kWarps> &a,
                                                                SharedTile<T, kRightRows, kRightCols> b,
                                                                Fragment<float, kRows, kCols, kWarps> acc) {
  constexpr int32 kSteps = kDepth / kMmaDepth;
#pragma unroll
  for (int32 slab = 0; slab < acc.kSlabs; ++slab) {
    // The negated comparisons hold for NaN.
    uint32 left[kSteps][4], above[kSteps][4], below[kSteps][4];
#pragma unroll
    for (int32 step = 0; step < kSteps; ++step) {
      load_left(left[step], a, slab, step * kMmaDepth);
#pragma unroll
      for (int32 i = 0; i < 4; ++i) {
        above[step][i] = indicator<T>(left[step][i], [](float x) { return !(x <= 0); });
        below[step][i] = indicator<T>(left[step][i], [](float x) { return !(x >= 0); });
      }
    }
    // Rare, so it is kept short: a loop over the columns, which copies its part of the accumulator.
#pragma unroll 1
    for (int32 column = 0; column < kCols; column += kRightColumns) {
      Pair<float> sum[2][2] = {};
#pragma unroll
      for (int32 tile = 0; tile < acc.kTiles; ++tile)
        if (tile / 2 == column / kRightColumns) {
          sum[tile % 2][0] = acc.pairs[slab][tile][0];
          sum[tile % 2][1] = acc.pairs[slab][tile][1];
        }
      Pair<float> to_plus[2][2] = {}, to_minus[2][2] = {};
#pragma unroll
      for (int32 step = 0; step < kSteps; ++step) {
        RightOperand right;
        load_right<kTransposed>(right, b, step * kMmaDepth, column);
        RightOperand finite, plus, minus;
#pragma unroll
        for (int32 i = 0; i < 4; ++i) {
          finite[i] = right[i] & ~((non_finite<T>(right[i]) >> 15) * 0xffffu);
          plus[i] = indicator<T>(right[i], [](float x) { return !(x < infinity()); });
          minus[i] = indicator<T>(right[i], [](float x) { return !(x > -infinity()); });
        }
#pragma unroll
        for (int32 side = 0; side < 2; ++side) {
          const int32 first = 2 * side, second = 2 * side + 1;
          multiply<T>(sum[side], left[step], finite[first], finite[second]);
          multiply<T>(to_plus[side], above[step], plus[first], plus[second]);
          multiply<T>(to_plus[side], below[step], minus[first], minus[second]);
          multiply<T>(to_minus[side], above[step], minus[first], minus[second]);
          multiply<T>(to_minus[side], below[step], plus[first], plus[second]);
        }
      }
#pragma unroll
      for (int32 tile = 0; tile < acc.kTiles; ++tile)
        if (tile / 2 == column / kRightColumns) {
#pragma unroll
          for (int32 half = 0; half < 2; ++half)
#pragma unroll
            for (int32 index = 0; index < 2; ++index) {
              const float up = to_plus[tile % 2][half].get(index) > 0 ? infinity() : 0.0f;
              const float down = to_minus[tile % 2][half].get(index) > 0 ? infinity() : 0.0f;
              acc.pairs[slab][tile][half].values[index] = sum[tile % 2][half].get(index) + up - down;
            }
        }
    }
  }
  return acc;
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_annihilating(const A &a, B b, const Acc &acc) {
  if (any_non_finite<Acc::kWarps * kWarpSize>(b))
    return dot_non_finite<false>(a, b, acc);
  return dot(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_transposed_annihilating(const A &a, B b, const Acc &acc) {
  if (any_non_finite<Acc::kWarps * kWarpSize>(b))
    return dot_non_finite<true>(a, b, acc);
  return dot_transposed(a, b, acc);
}

} // namespace nsa
