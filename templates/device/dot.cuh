// dot(a, b, acc) = acc + a b and dot_transposed(a, b, acc) = acc + a b^T for 16-bit operands, on mma.sync.
// `a` and `acc` are fragments, `b` is a shared tile that the block has synchronised on.
// Float operands are in dot_float.cuh, products in which zero annihilates NaN and Inf in dot_annihilating.cuh.
#pragma once

#include "fragment.cuh"
#include "ptx_matrix.cuh"
#include "shared_tile.cuh"

namespace nsa {

inline constexpr int32 kMmaDepth = 16;

// The right operand of two neighbouring 16x8 products: registers 0, 1 for the first and 2, 3 for the second.
using RightOperand = uint32[4];
inline constexpr int32 kRightColumns = 2 * kTileColumns;

// `b` is stored as K x N: rows are the depth.
template <typename T, int32 kRows, int32 kCols>
NSA_DEVICE void load_right(RightOperand &b, SharedTile<T, kRows, kCols> tile, int32 depth, int32 column) {
  const int32 lane = threadIdx.x % kWarpSize;
  ldmatrix_x4_transposed(b, tile.address(depth + lane % 16, column / 8 + lane / 16));
}

// `b` is stored as N x K: rows are the columns of the product.
template <typename T, int32 kRows, int32 kCols>
NSA_DEVICE void load_right_transposed(RightOperand &b, SharedTile<T, kRows, kCols> tile, int32 depth, int32 column) {
  const int32 lane = threadIdx.x % kWarpSize;
  ldmatrix_x4(b, tile.address(column + lane / 16 * 8 + lane % 8, depth / 8 + lane / 8 % 2));
}

// The four registers of a 16x16 left operand are two neighbouring column tiles of the fragment.
template <typename T, int32 kRows, int32 kDepth, int32 kWarps>
NSA_DEVICE void load_left(uint32 (&a)[4], const Fragment<T, kRows, kDepth, kWarps> &fragment, int32 slab, int32 depth) {
  const int32 tile = depth / kTileColumns;
  a[0] = fragment.pairs[slab][tile][0].bits;
  a[1] = fragment.pairs[slab][tile][1].bits;
  a[2] = fragment.pairs[slab][tile + 1][0].bits;
  a[3] = fragment.pairs[slab][tile + 1][1].bits;
}

// The left operand, from shared memory to registers.
template <typename Result, typename T, int32 kRows, int32 kCols>
NSA_DEVICE Result load_operand(SharedTile<T, kRows, kCols> tile) {
  static_assert(kCols % kMmaDepth == 0, "a left operand is made of 16x16 blocks");
  const int32 lane = threadIdx.x % kWarpSize;
  Result result;
#pragma unroll
  for (int32 slab = 0; slab < Result::kSlabs; ++slab)
#pragma unroll
    for (int32 depth = 0; depth < kCols; depth += kMmaDepth) {
      uint32 block[4];
      const int32 first_row = Result::row(slab, 0) - lane / 4;
      ldmatrix_x4(block, tile.address(first_row + lane % 16, depth / 8 + lane / 16));
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        result.pairs[slab][depth / kTileColumns + i / 2][i % 2].bits = block[i];
    }
  return result;
}

// One 16x8 tile of the accumulator: c += a b.
template <typename T> NSA_DEVICE void multiply(Pair<float> (&c)[2], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  float elements[4] = {c[0].values[0], c[0].values[1], c[1].values[0], c[1].values[1]};
  mma_m16n8k16(T{}, elements, a, b0, b1);
  c[0] = {{elements[0], elements[1]}};
  c[1] = {{elements[2], elements[3]}};
}

template <bool kTransposed, typename T, int32 kRows, int32 kCols>
NSA_DEVICE void load_right(RightOperand &b, SharedTile<T, kRows, kCols> tile, int32 depth, int32 column) {
  if constexpr (kTransposed)
    load_right_transposed(b, tile, depth, column);
  else
    load_right(b, tile, depth, column);
}

template <bool kTransposed, typename T, int32 kRows, int32 kCols, int32 kDepth, int32 kWarps, int32 kRightRows,
          int32 kRightCols>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> dot_half(const Fragment<T, kRows, kDepth, kWarps> &a,
                                                          SharedTile<T, kRightRows, kRightCols> b,
                                                          Fragment<float, kRows, kCols, kWarps> acc) {
  static_assert(kIsHalf<T>, "mma.sync multiplies 16-bit floats");
  static_assert(kRightRows == (kTransposed ? kCols : kDepth) && kRightCols == (kTransposed ? kDepth : kCols),
                "the operands' inner sizes agree");
  static_assert(kDepth % kMmaDepth == 0, "the inner size is a multiple of 16");
  static_assert(kCols % kRightColumns == 0, "ldmatrix.x4 brings two column tiles at a time");
#pragma unroll
  for (int32 depth = 0; depth < kDepth; depth += kMmaDepth)
#pragma unroll
    for (int32 column = 0; column < kCols; column += kRightColumns) {
      RightOperand right;
      load_right<kTransposed>(right, b, depth, column);
#pragma unroll
      for (int32 slab = 0; slab < acc.kSlabs; ++slab) {
        uint32 left[4];
        load_left(left, a, slab, depth);
#pragma unroll
        for (int32 side = 0; side < 2; ++side)
          multiply<T>(acc.pairs[slab][column / kTileColumns + side], left, right[2 * side], right[2 * side + 1]);
      }
    }
  return acc;
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot(const A &a, B b, const Acc &acc) {
  return dot_half<false>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_transposed(const A &a, B b, const Acc &acc) {
  return dot_half<true>(a, b, acc);
}

} // namespace nsa
