// Matrix products of 16-bit operands on mma.sync: dot(a, b, acc) = acc + a b and dot_transposed(a, b, acc) = acc + a
// b^T. `a` is a fragment or a shared tile, `b` is a shared tile, and `acc` is a fragment. After the block has written a
// shared tile, the block must synchronise before a product reads the tile. Matrix products of floats are in
// dot_float.cuh. Matrix products in which a zero of `a` times NaN or Inf counts as 0 are in dot_annihilating.cuh.
#pragma once

#include "fragment.cuh"
#include "ptx_matrix.cuh"
#include "shared_tile.cuh"

namespace nsa {

inline constexpr int32 kMmaDepth = 16;

// The right operand of two neighbouring 16x8 products: registers 0, 1 for the first product and 2, 3 for the second.
using RightOperand = uint32[4];
inline constexpr int32 kRightColumns = 2 * kTileColumns;

// Returns a cursor (shared_tile.cuh) at the row and chunk of the right operand whose address the lane passes to
// ldmatrix. A plain right operand `b` is stored as K x N: its rows are the depth of the product. A transposed right
// operand `b` is stored as N x K: its rows are the columns of the product.
template <bool kTransposed, typename T, int32 kRows, int32 kCols>
NSA_DEVICE auto right_cursor(SharedTile<T, kRows, kCols> b) {
  const int32 lane = threadIdx.x % kWarpSize;
  if constexpr (kTransposed)
    return b.cursor(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  else
    return b.cursor(lane % 16, lane / 16);
}

template <bool kTransposed, int32 kChunksPerRow>
NSA_DEVICE void load_right(RightOperand &right, SharedCursor<kChunksPerRow> b, int32 depth, int32 column) {
  if constexpr (kTransposed)
    ldmatrix_x4(right, b.at(column, depth / 8));
  else
    ldmatrix_x4_transposed(right, b.at(depth, column / 8));
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

// Returns a cursor (shared_tile.cuh) at the row and chunk of the left operand whose address the lane passes to
// ldmatrix. The row of the cursor is one of the rows that the lane's warp multiplies.
template <int32 kSlabs, typename T, int32 kRows, int32 kCols>
NSA_DEVICE auto left_cursor(SharedTile<T, kRows, kCols> a) {
  static_assert(kCols % kMmaDepth == 0, "a left operand is made of 16x16 blocks");
  const int32 lane = threadIdx.x % kWarpSize;
  const int32 first_row = static_cast<int32>(threadIdx.x) / kWarpSize * kSlabs * kSlabRows;
  return a.cursor(first_row + lane % 16, lane / 16);
}

template <int32 kChunksPerRow>
NSA_DEVICE void load_left(uint32 (&a)[4], SharedCursor<kChunksPerRow> cursor, int32 slab, int32 depth) {
  ldmatrix_x4(a, cursor.at(slab * kSlabRows, depth / 8));
}

// Loads a left operand from shared memory into a fragment.
template <typename Result, typename T, int32 kRows, int32 kCols>
NSA_DEVICE Result load_operand(SharedTile<T, kRows, kCols> tile) {
  const auto cursor = left_cursor<Result::kSlabs>(tile);
  Result result;
#pragma unroll
  for (int32 slab = 0; slab < Result::kSlabs; ++slab)
#pragma unroll
    for (int32 depth = 0; depth < kCols; depth += kMmaDepth) {
      uint32 block[4];
      load_left(block, cursor, slab, depth);
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        result.pairs[slab][depth / kTileColumns + i / 2][i % 2].bits = block[i];
    }
  return result;
}

// Computes c += a b for one 16x8 tile `c` of the accumulator.
template <typename T> NSA_DEVICE void multiply(Pair<float> (&c)[2], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  float elements[4] = {c[0].values[0], c[0].values[1], c[1].values[0], c[1].values[1]};
  mma_m16n8k16(T{}, elements, a, b0, b1);
  c[0] = {{elements[0], elements[1]}};
  c[1] = {{elements[2], elements[3]}};
}

// The argument `left` is a fragment, or the cursor of a left operand in shared memory.
template <bool kTransposed, int32 kDepth, typename Left, typename T, int32 kRows, int32 kCols, int32 kWarps,
          int32 kRightRows, int32 kRightCols>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> dot_half(const Left &left, SharedTile<T, kRightRows, kRightCols> b,
                                                          Fragment<float, kRows, kCols, kWarps> acc) {
  static_assert(kIsHalf<T>, "mma.sync multiplies 16-bit floats");
  static_assert(kRightRows == (kTransposed ? kCols : kDepth) && kRightCols == (kTransposed ? kDepth : kCols),
                "the operands' inner sizes agree");
  static_assert(kDepth % kMmaDepth == 0, "the inner size is a multiple of 16");
  static_assert(kCols % kRightColumns == 0, "ldmatrix.x4 brings two column tiles at a time");
  const auto right_place = right_cursor<kTransposed>(b);
#pragma unroll
  for (int32 depth = 0; depth < kDepth; depth += kMmaDepth) {
    uint32 blocks[acc.kSlabs][4];
#pragma unroll
    for (int32 slab = 0; slab < acc.kSlabs; ++slab)
      load_left(blocks[slab], left, slab, depth);
#pragma unroll
    for (int32 column = 0; column < kCols; column += kRightColumns) {
      RightOperand right;
      load_right<kTransposed>(right, right_place, depth, column);
#pragma unroll
      for (int32 slab = 0; slab < acc.kSlabs; ++slab)
#pragma unroll
        for (int32 side = 0; side < 2; ++side)
          multiply<T>(acc.pairs[slab][column / kTileColumns + side], blocks[slab], right[2 * side],
                      right[2 * side + 1]);
    }
  }
  return acc;
}

template <bool kTransposed, typename T, int32 kRows, int32 kDepth, int32 kWarps, typename B, typename Acc>
NSA_DEVICE Acc dot_half_of(const Fragment<T, kRows, kDepth, kWarps> &a, B b, const Acc &acc) {
  static_assert(kRows == Acc::kRows && kWarps == Acc::kWarps, "left operand and accumulator have the same rows");
  return dot_half<kTransposed, kDepth>(a, b, acc);
}

template <bool kTransposed, typename T, int32 kRows, int32 kDepth, typename B, typename Acc>
NSA_DEVICE Acc dot_half_of(SharedTile<T, kRows, kDepth> a, B b, const Acc &acc) {
  static_assert(kRows == Acc::kRows, "left operand and accumulator have the same rows");
  return dot_half<kTransposed, kDepth>(left_cursor<Acc::kSlabs>(a), b, acc);
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot(const A &a, B b, const Acc &acc) {
  return dot_half_of<false>(a, b, acc);
}

template <typename A, typename B, typename Acc>
  requires kIsHalf<typename B::Element>
NSA_DEVICE Acc dot_transposed(const A &a, B b, const Acc &acc) {
  return dot_half_of<true>(a, b, acc);
}

} // namespace nsa
