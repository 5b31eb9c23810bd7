// Sums of the rows of a left operand on mma.sync.
#pragma once

#include "dot.cuh"

namespace nsa {

// Returns the sum of each row of the operand, which is its product with ones. All columns of the product are equal, so
// all four lanes that share a row have its sum.
template <typename T, int32 kRows, int32 kDepth, int32 kWarps>
NSA_DEVICE RowVector<float, kRows, kWarps> sum_operand(const Fragment<T, kRows, kDepth, kWarps> &operand) {
  static_assert(kDepth % kMmaDepth == 0, "a left operand is made of 16x16 blocks");
  const uint32 ones = Pair<T>::make(1.0f, 1.0f).bits;
  RowVector<float, kRows, kWarps> result;
#pragma unroll
  for (int32 slab = 0; slab < result.kSlabs; ++slab) {
    Pair<float> sums[2] = {};
#pragma unroll
    for (int32 depth = 0; depth < kDepth; depth += kMmaDepth) {
      uint32 block[4];
      load_left(block, operand, slab, depth);
      multiply<T>(sums, block, ones, ones);
    }
    result.values[slab][0] = sums[0].values[0];
    result.values[slab][1] = sums[1].values[0];
  }
  return result;
}

} // namespace nsa
