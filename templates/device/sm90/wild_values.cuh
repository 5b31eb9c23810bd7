// Handles the elements of V that are Inf or NaN (wild values). If a row does not attend a key, the key's weight in the
// row is 0, and the key's value must not change the row's result. Matrix units compute 0 * NaN and 0 * Inf as NaN, so
// an Inf or a NaN in V would also reach the rows that do not attend its key.
//
// Three warps of a block, the inspectors, search V for Inf and NaN, but only at keys that some rows of the block do not
// attend. If an inspector finds an Inf or a NaN in a tile, add_wild adds each Inf and each NaN of the tile to the
// output sums of the rows that attend its key. add_wild uses plain additions instead of the matrix units. add_wild does
// not multiply an Inf or a NaN with its softmax weight, because the weight is positive, and a positive factor changes
// neither an Inf nor a NaN. clear_wild then replaces each Inf and each NaN of the tile with 0.
#pragma once

#include "layout.cuh"
#include "non_finite.cuh"
#include "ptx_convert.cuh"
#include "sm90/descriptor.cuh"
#include "sm90/ptx_tma.cuh"
#include "sm90/score_tile.cuh"

namespace nsa {

// A tile of 16-bit values in shared memory. The tile has the format that a TMA copy with the 128-byte swizzle writes
// (descriptor.cuh).
template <typename T, int32 kRows_, int32 kChunks_> struct ValueTile {
  using Element = T;
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kChunks = kChunks_;
  static constexpr int32 kBytes = kChunks * chunk_bytes(kRows, kSwizzle128);
  static_assert(sizeof(T) == 2, "a word holds two elements");

  unsigned char *base;

  // Returns the 32-bit word that holds two elements of a row: column `column`, which must be even, and column `column`
  // + 1.
  NSA_DEVICE uint32 &word(int32 row, int32 column) const {
    return *reinterpret_cast<uint32 *>(base + chunked_offset(row, column, kRows, kSwizzle128, sizeof(T)));
  }
};

// Searches rows [first, past) of a tile for Inf and NaN. `lanes` threads share the rows, and `lane` is the number of
// this thread. Returns whether this thread found an Inf or a NaN in its part of the rows.
template <typename Tile> NSA_DEVICE bool finds_wild(Tile tile, int32 first, int32 past, int32 lane, int32 lanes) {
  constexpr int32 kRowWords = kSwizzle128 / kChunkBytes;
  uint32 found = 0;
  const int32 pieces = (past - first) * kRowWords;
#pragma unroll 1
  for (int32 chunk = 0; chunk < Tile::kChunks; ++chunk) {
    // The swizzle moves 16-byte units only within a row of a chunk, so finds_wild can ignore the swizzle when it reads
    // whole rows.
    const Chunk *rows =
        reinterpret_cast<const Chunk *>(tile.base + chunk_bytes(Tile::kRows, kSwizzle128) * chunk) + first * kRowWords;
#pragma unroll 2
    for (int32 piece = lane; piece < pieces; piece += lanes) {
      const Chunk words = rows[piece];
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        found |= non_finite<typename Tile::Element>(words.words[i]);
    }
  }
  return found != 0;
}

// Adds each Inf and each NaN of a tile to the sums of the rows that attend its key. The array `o` is the thread's part
// of the warpgroup's accumulator, which has 64 rows. Inf and NaN are rare, so add_wild is written for short code and
// few registers, not for speed. Registers cannot be indexed at run time, so each iteration of the outer loop rotates
// the column tiles of `o` in the registers by one.
template <typename Tile, int32 kCount>
NSA_DEVICE void add_wild(float (&o)[kCount], Tile tile, int32 first_key, const KeyRange (&rows)[2]) {
  using T = typename Tile::Element;
#pragma unroll 1
  for (int32 column_tile = 0; column_tile < kCount / 4; ++column_tile) {
    const int32 column = fragment_column(threadIdx.x, column_tile, 0);
    float sums[4] = {o[0], o[1], o[2], o[3]};
#pragma unroll 1
    for (int32 row = 0; row < Tile::kRows; ++row) {
      const int32 key = first_key + row;
      const Pair<T> pair{tile.word(row, column)};
      const uint32 wild = non_finite<T>(pair.bits) >> 15;
#pragma unroll
      for (int32 i = 0; i < 4; ++i)
        if ((wild >> 16 * (i % 2) & 1) != 0 && key >= rows[i / 2].first && key < rows[i / 2].past)
          sums[i] += to_float(pair.get(i % 2));
    }
#pragma unroll
    for (int32 i = 4; i < kCount; ++i)
      o[i - 4] = o[i];
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      o[kCount - 4 + i] = sums[i];
  }
}

// Replaces each Inf and each NaN of a tile with 0; `lanes` threads share the work. Matrix products may read the cleared
// tile after fence_async and a barrier.
template <typename Tile> NSA_DEVICE void clear_wild(Tile tile, int32 lane, int32 lanes) {
  uint32 *words = reinterpret_cast<uint32 *>(tile.base);
#pragma unroll 1
  for (int32 index = lane; index < Tile::kBytes / 4; index += lanes)
    words[index] &= ~((non_finite<typename Tile::Element>(words[index]) >> 15) * 0xffffu);
}

} // namespace nsa
