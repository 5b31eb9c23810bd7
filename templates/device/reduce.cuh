// Reductions along the columns of a fragment: each thread reduces its own columns first, then the four lanes of a row
// combine their results. The layout of a fragment fixes the order of the operations in a reduction, so results repeat
// bit for bit.
#pragma once

#include "fragment.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"

namespace nsa {

template <int32 kRows, int32 kCols, int32 kWarps, typename Combine>
NSA_DEVICE RowVector<float, kRows, kWarps> reduce_columns(const Fragment<float, kRows, kCols, kWarps> &x,
                                                          const Combine &combine) {
  RowVector<float, kRows, kWarps> result;
#pragma unroll
  for (int32 slab = 0; slab < result.kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      float low = x.get(slab, 0, half, 0);
      float high = x.get(slab, 0, half, 1);
#pragma unroll
      for (int32 tile = 1; tile < x.kTiles; ++tile) {
        low = combine(low, x.get(slab, tile, half, 0));
        high = combine(high, x.get(slab, tile, half, 1));
      }
      float value = combine(low, high);
      value = combine(value, shuffle_xor(value, 1));
      result.values[slab][half] = combine(value, shuffle_xor(value, 2));
    }
  return result;
}

template <typename Tile> NSA_DEVICE auto reduce_max(const Tile &x) {
  return reduce_columns(x, [](float a, float b) { return max_number(a, b); });
}

template <typename Tile> NSA_DEVICE auto reduce_add(const Tile &x) {
  return reduce_columns(x, [](float a, float b) { return a + b; });
}

// Returns the last column of a fragment, one value per row. Four lanes hold each row, and the last of the four holds
// the last column.
template <int32 kRows, int32 kCols, int32 kWarps>
NSA_DEVICE RowVector<float, kRows, kWarps> reduce_last(const Fragment<float, kRows, kCols, kWarps> &x) {
  RowVector<float, kRows, kWarps> result;
#pragma unroll
  for (int32 slab = 0; slab < result.kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
      result.values[slab][half] = shuffle(x.get(slab, x.kTiles - 1, half, 1), threadIdx.x % kWarpSize | 3);
  return result;
}

} // namespace nsa
