// shift_columns(x, first): moves every column of `x` one place to the right, drops the last column, and makes `first`
// the first column.
#pragma once

#include "fragment.cuh"
#include "ptx_warp.cuh"

namespace nsa {

// Four lanes share each row, and each lane holds one even and one odd column of each column tile. The shift moves the
// odd column of a lane into the even column of the next lane. The first of the four lanes gets its even column from the
// odd column of the last lane in the preceding column tile. One shuffle per column tile is enough: in each shuffle the
// first lane receives the odd column of the last lane, and saves it for the next column tile.
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
