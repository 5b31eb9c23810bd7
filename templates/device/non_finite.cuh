// Whether a shared tile holds an Inf or a NaN, which a product must know before its zeros may meet them.
#pragma once

#include "ptx_warp.cuh"
#include "shared_tile.cuh"

namespace nsa {

// All elements of a word at once: the topmost bit of each that is Inf or NaN. Only a full exponent carries into it.
template <typename T> NSA_DEVICE uint32 non_finite(uint32 word) {
  constexpr uint32 kExponent = kSameType<T, bf16> ? 0x7f807f80u : kSameType<T, f16> ? 0x7c007c00u : 0x7f800000u;
  constexpr uint32 kExponentUnit = kSameType<T, bf16> ? 0x00800080u : kSameType<T, f16> ? 0x04000400u : 0x00800000u;
  constexpr uint32 kCarry = sizeof(T) == 4 ? 0x80000000u : 0x80008000u;
  return ((word & kExponent) + kExponentUnit) & kCarry;
}

// All threads of the block take part.
template <int32 kThreads, typename T, int32 kRows, int32 kCols>
NSA_DEVICE bool any_non_finite(SharedTile<T, kRows, kCols> tile) {
  constexpr int32 kChunksPerRow = SharedTile<T, kRows, kCols>::kChunksPerRow;
  uint32 found = 0;
#pragma unroll 4
  for (int32 index = threadIdx.x; index < kRows * kChunksPerRow; index += kThreads) {
    const Chunk chunk = tile.chunk(index / kChunksPerRow, index % kChunksPerRow);
#pragma unroll
    for (int32 word = 0; word < 4; ++word)
      found |= non_finite<T>(chunk.words[word]);
  }
  return any_thread(found != 0);
}

} // namespace nsa
