// dot_keeping(a, b, acc) computes the same product as dot_annihilating(a, b, acc) of dot_annihilating.cuh, bit for bit,
// and leaves `b` as it is: a zero of `a` times a NaN or an Inf of `b` is zero. Programs use it if they read `b` again.
// `a` may be a fragment, a shared tile, or a transposed shared tile. The file is for 16-bit operands.
//
// If `b` holds a NaN or an Inf, a loop over the columns computes the product: it adds the products of the NaN and Inf
// elements first, and then multiplies with copies of the right operand in which they are zero. The loop is not
// unrolled, because it runs rarely and is compiled at each cold start.
#pragma once

#include "dot_annihilating.cuh"
#include "transposed_left.cuh"

namespace nsa {

// The left operand `a` of a product with the accumulator Acc. LeftElements::get returns one element in the row that
// `slab` and `half` name; all lanes of the warp call it together.
template <typename A, typename Acc> struct LeftElements;

template <typename T, int32 kRows, int32 kDepth, int32 kWarps, typename Acc>
struct LeftElements<Fragment<T, kRows, kDepth, kWarps>, Acc> {
  const Fragment<T, kRows, kDepth, kWarps> &a;

  NSA_DEVICE const Fragment<T, kRows, kDepth, kWarps> &blocks() const { return a; }

  // Registers cannot be indexed at run time, so bit masks select the register. The lane that holds it sends it to the
  // other lanes of the row.
  NSA_DEVICE float get(int32 slab, int32 half, int32 depth) const {
    uint32 bits = 0;
#pragma unroll
    for (int32 place = 0; place < a.kTiles; ++place)
      bits |= a.pairs[slab][place][half].bits & (place == depth / kTileColumns ? 0xffffffffu : 0u);
    const int32 first_lane_of_row = threadIdx.x & (kWarpSize - 4);
    return to_float(Pair<T>{shuffle(bits, first_lane_of_row + depth % kTileColumns / 2)}.get(depth % 2));
  }
};

template <typename T, int32 kRows, int32 kDepth, typename Acc> struct LeftElements<SharedTile<T, kRows, kDepth>, Acc> {
  SharedTile<T, kRows, kDepth> a;

  NSA_DEVICE auto blocks() const { return left_cursor<Acc::kSlabs>(a); }

  NSA_DEVICE float get(int32 slab, int32 half, int32 depth) const {
    constexpr int32 kChunkElements = SharedTile<T, kRows, kDepth>::kChunkElements;
    const Chunk &chunk = a.chunk(Acc::row(slab, half), depth / kChunkElements);
    return to_float(reinterpret_cast<const T *>(chunk.words)[depth % kChunkElements]);
  }
};

template <typename T, int32 kRows, int32 kDepth, typename Acc>
struct LeftElements<TransposedTile<T, kRows, kDepth>, Acc> {
  TransposedTile<T, kRows, kDepth> a;

  NSA_DEVICE auto blocks() const { return left_cursor<Acc::kSlabs>(a); }
  NSA_DEVICE float get(int32 slab, int32 half, int32 depth) const {
    return to_float(a.get(Acc::row(slab, half), depth));
  }
};

// The product with a right operand that holds a NaN or an Inf. Each iteration computes the first two column tiles of
// the accumulator, and then rotates the accumulator's column tiles in the registers by two.
template <bool kTransposed, typename A, typename T, int32 kRightRows, int32 kRightCols, typename Acc>
NSA_DEVICE Acc dot_of_non_finite(const LeftElements<A, Acc> &left, SharedTile<T, kRightRows, kRightCols> b, Acc acc) {
  constexpr int32 kDepth = A::kCols;
  const auto left_blocks = left.blocks();
  const auto right_place = right_cursor<kTransposed>(b);
#pragma unroll 1
  for (int32 column = 0; column < Acc::kCols; column += kRightColumns) {
    Pair<float> sums[Acc::kSlabs][2][2]; // [slab][column tile][half]
#pragma unroll
    for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
      for (int32 side = 0; side < 2; ++side)
#pragma unroll
        for (int32 half = 0; half < 2; ++half)
          sums[slab][side][half] = acc.pairs[slab][side][half];
#pragma unroll 1
    for (int32 depth = 0; depth < kDepth; ++depth) {
#pragma unroll
      for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
        for (int32 half = 0; half < 2; ++half) {
          const float element = left.get(slab, half, depth);
#pragma unroll
          for (int32 side = 0; side < 2; ++side) {
            const Pair<T> right = right_pair<kTransposed>(b, depth, column / kTileColumns + side);
            const uint32 taken = element == 0 ? 0 : non_finite<T>(right.bits) >> 15;
#pragma unroll
            for (int32 index = 0; index < 2; ++index) {
              float &sum = sums[slab][side][half].values[index];
              sum = (taken >> 16 * index & 1) != 0 ? fmaf(element, to_float(right.get(index)), sum) : sum;
            }
          }
        }
    }
#pragma unroll
    for (int32 depth = 0; depth < kDepth; depth += kMmaDepth) {
      RightOperand right;
      load_right<kTransposed>(right, right_place, depth, column);
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        right[i] &= ~((non_finite<T>(right[i]) >> 15) * 0xffffu);
#pragma unroll
      for (int32 slab = 0; slab < Acc::kSlabs; ++slab) {
        uint32 block[4];
        load_left(block, left_blocks, slab, depth);
#pragma unroll
        for (int32 side = 0; side < 2; ++side)
          multiply<T>(sums[slab][side], block, right[2 * side], right[2 * side + 1]);
      }
    }
#pragma unroll
    for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
      for (int32 half = 0; half < 2; ++half) {
#pragma unroll
        for (int32 next = 2; next < Acc::kTiles; ++next)
          acc.pairs[slab][next - 2][half] = acc.pairs[slab][next][half];
#pragma unroll
        for (int32 side = 0; side < 2; ++side)
          acc.pairs[slab][Acc::kTiles - 2 + side][half] = sums[slab][side][half];
      }
  }
  return acc;
}

// `where` has the same value in all threads of the block, as in dot_annihilating.
template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_keeping(const A &a, B b, const Acc &acc, bool where = true) {
  if (where && any_non_finite<Acc::kWarps * kWarpSize>(b))
    return dot_of_non_finite<false>(LeftElements<A, Acc>{a}, b, acc);
  return dot(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_transposed_keeping(const A &a, B b, const Acc &acc, bool where = true) {
  if (where && any_non_finite<Acc::kWarps * kWarpSize>(b))
    return dot_of_non_finite<true>(LeftElements<A, Acc>{a}, b, acc);
  return dot_transposed(a, b, acc);
}

} // namespace nsa
