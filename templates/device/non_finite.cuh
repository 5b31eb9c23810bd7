// Finds and removes Inf and NaN in shared tiles. Inf and NaN must be removed before a matrix product in which a zero
// may meet them, because matrix units compute 0 * Inf and 0 * NaN as NaN.
#pragma once

#include "ptx_warp.cuh"
#include "shared_tile.cuh"

namespace nsa {

// Returns a word in which the topmost bit of each element is set if the element is Inf or NaN; all other bits are zero.
// The exponent of an Inf or a NaN has all bits set. non_finite adds one to the exponent of each element, and the
// addition carries into the element's topmost bit only if all bits of the exponent are set.
template <typename T> NSA_DEVICE uint32 non_finite(uint32 word) {
  constexpr uint32 kExponent = kSameType<T, bf16> ? 0x7f807f80u : kSameType<T, f16> ? 0x7c007c00u : 0x7f800000u;
  constexpr uint32 kExponentUnit = kSameType<T, bf16> ? 0x00800080u : kSameType<T, f16> ? 0x04000400u : 0x00800000u;
  constexpr uint32 kCarry = sizeof(T) == 4 ? 0x80000000u : 0x80008000u;
  return ((word & kExponent) + kExponentUnit) & kCarry;
}

// Returns whether the tile holds an Inf or a NaN. All threads of the block call any_non_finite and get the same answer.
template <int32 kThreads, typename T, int32 kRows, int32 kCols>
NSA_DEVICE bool any_non_finite(SharedTile<T, kRows, kCols> tile) {
  // any_non_finite reads the tile in the order of addresses and ignores the swizzle, because the row and the column of
  // an Inf or a NaN do not matter.
  constexpr int32 kChunks = SharedTile<T, kRows, kCols>::kBytes / kChunkBytes;
  constexpr int32 kSteps = (kChunks + kThreads - 1) / kThreads;
  const Chunk *chunks = reinterpret_cast<const Chunk *>(tile.base) + threadIdx.x;
  uint32 found = 0;
#pragma unroll kSteps % 4 == 0 ? 4 : kSteps % 3 == 0 ? 3 : kSteps % 2 == 0 ? 2 : 1
  for (int32 step = 0; step < kSteps; ++step) {
    if (kChunks % kThreads != 0 && static_cast<int32>(threadIdx.x) + step * kThreads >= kChunks)
      break;
    const Chunk chunk = chunks[step * kThreads];
#pragma unroll
    for (int32 word = 0; word < 4; ++word)
      found |= non_finite<T>(chunk.words[word]);
  }
  return any_thread(found != 0);
}

// Replaces every Inf and NaN in a tile of 16-bit elements with zero. All threads of the block call clear_non_finite,
// which begins and ends with a barrier of the block. Threads may read the tile before and after clear_non_finite
// without a further barrier.
template <int32 kThreads, typename T, int32 kRows, int32 kCols>
NSA_DEVICE void clear_non_finite(SharedTile<T, kRows, kCols> tile) {
  static_assert(sizeof(T) == 2, "the mask is of two elements a word");
  constexpr int32 kWords = SharedTile<T, kRows, kCols>::kBytes / 4;
  uint32 *words = reinterpret_cast<uint32 *>(tile.base);
  __syncthreads();
#pragma unroll 1
  for (int32 index = threadIdx.x; index < kWords; index += kThreads)
    words[index] &= ~((non_finite<T>(words[index]) >> 15) * 0xffffu);
  __syncthreads();
}

} // namespace nsa
