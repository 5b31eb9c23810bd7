// transposed(tile): the transposed tile as the left operand of a product, dot(transposed(a), b, acc) = acc + a^T b. `a`
// is a shared tile that is stored as K x M: its rows are the depth of the product.
#pragma once

#include "dot.cuh"
#include "dot_float.cuh"

namespace nsa {

template <typename T, int32 kRows_, int32 kCols_> struct TransposedTile {
  using Element = T;
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kCols = kCols_;
  SharedTile<T, kCols, kRows> tile;

  NSA_DEVICE T get(int32 row, int32 column) const {
    constexpr int32 kChunkElements = SharedTile<T, kCols, kRows>::kChunkElements;
    return reinterpret_cast<const T *>(tile.chunk(column, row / kChunkElements).words)[row % kChunkElements];
  }
};

template <typename T, int32 kRows, int32 kCols>
NSA_DEVICE TransposedTile<T, kCols, kRows> transposed(SharedTile<T, kRows, kCols> tile) {
  return {tile};
}

// The positions from which a lane reads a transposed left operand of 16-bit elements: one cursor for each slab, because
// the slabs of a warp are chunks of the same rows.
template <int32 kSlabs, int32 kChunksPerRow> struct TransposedLeft {
  SharedCursor<kChunksPerRow> slabs[kSlabs];
};

template <int32 kSlabs, typename T, int32 kRows, int32 kCols>
NSA_DEVICE auto left_cursor(TransposedTile<T, kRows, kCols> a) {
  static_assert(kCols % kMmaDepth == 0, "a left operand is made of 16x16 blocks");
  const int32 lane = threadIdx.x % kWarpSize;
  const int32 warp = static_cast<int32>(threadIdx.x) / kWarpSize;
  TransposedLeft<kSlabs, SharedTile<T, kCols, kRows>::kChunksPerRow> left;
#pragma unroll
  for (int32 slab = 0; slab < kSlabs; ++slab)
    left.slabs[slab] = a.tile.cursor(lane / 16 * 8 + lane % 8, (warp * kSlabs + slab) * 2 + lane / 8 % 2);
  return left;
}

template <int32 kSlabs, int32 kChunksPerRow>
NSA_DEVICE void load_left(uint32 (&a)[4], const TransposedLeft<kSlabs, kChunksPerRow> &left, int32 slab, int32 depth) {
  ldmatrix_x4_transposed(a, left.slabs[slab].at(depth, 0));
}

template <bool kTransposed, typename T, int32 kRows, int32 kDepth, typename B, typename Acc>
NSA_DEVICE Acc dot_half_of(TransposedTile<T, kRows, kDepth> a, B b, const Acc &acc) {
  static_assert(kRows == Acc::kRows, "left operand and accumulator have the same rows");
  return dot_half<kTransposed, kDepth>(left_cursor<Acc::kSlabs>(a), b, acc);
}

// Loads columns depth + part to depth + part + 3 of a transposed left operand of floats, in the thread's rows.
template <int32 kRows, int32 kDepth, typename Acc>
NSA_DEVICE void load_left(LeftFloats<Acc::kSlabs> &left, TransposedTile<float, kRows, kDepth> a, const Acc &,
                          int32 depth, int32 part) {
#pragma unroll
  for (int32 slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
#pragma unroll
      for (int32 i = 0; i < kFloatDepth; ++i)
        left.values[slab][half][i] = a.get(Acc::row(slab, half), depth + part + i);
}

template <int32 kRows, int32 kDepth> NSA_DEVICE void move_down(TransposedTile<float, kRows, kDepth> &) {}

} // namespace nsa
