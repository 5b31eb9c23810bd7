// shift_columns(x, first): every column one to the right, and a new first one.
#pragma once

#include "fragment.cuh"
#include "ptx_warp.cuh"

namespace nsa {

// A lane's even column comes from its left neighbour's odd one. The first of the four lanes takes it from the last, of
// the column tile before: the same exchange brings what its next column tile needs.
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
