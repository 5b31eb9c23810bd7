// shift_columns(x, first): moves every column of `x` one place to the right, drops the last column, and makes `first`
// the first column.
#pragma once

#include "fragment.cuh"
#include "ptx_warp.cuh"

namespace nsa {

// In a shift, the new even column of a lane comes from the odd column of its left neighbour. The first of the four
// lanes of a row has no left neighbour: its new even column is the last lane's odd column in the preceding column tile.
// One shuffle per column tile serves all four lanes, because the first lane saves the received column and uses it in
// the next column tile.
template <int32 kRows, int32 kCols, int32 kWarps>
NSA_DEVICE Fragment<float, kRows, kCols, kWarps> shift_columns(const Fragment<float, kRows, kCols, kWarps> &x,
                                                               const RowVector<float, kRows, kWarps> &first) {
  const int32 lane = threadIdx.x % kWarpSize;
  const int32 neighbour = (lane & ~3) | ((lane + 3) & 3);
  Fragment<float, kRows, kCols, kWarps> result;
#pragma unroll
  for (int32 slab = 0; slab < x.kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      float before = first.values[slab][half];
#pragma unroll
      for (int32 tile = 0; tile < x.kTiles; ++tile) {
        const float received = shuffle(x.get(slab, tile, half, 1), neighbour);
        result.pairs[slab][tile][half] =
            Pair<float>::make(lane % 4 == 0 ? before : received, x.get(slab, tile, half, 0));
        before = received;
      }
    }
  return result;
}

} // namespace nsa
