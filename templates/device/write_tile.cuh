// write_tile(fragment, tile): writes a computed tile from registers to shared memory. Each thread writes the elements
// that it holds. Other threads may read the tile after a barrier.
#pragma once

#include "fragment.cuh"
#include "shared_tile.cuh"

namespace nsa {

// The two columns that a thread holds in a column tile are neighbours in one 16-byte chunk. The swizzle spreads the
// chunks of the eight rows that a warp writes at once over all banks.
template <typename T, int32 kRows, int32 kCols, int32 kWarps>
NSA_DEVICE void write_tile(const Fragment<T, kRows, kCols, kWarps> &fragment, SharedTile<T, kRows, kCols> tile) {
  using Tile = Fragment<T, kRows, kCols, kWarps>;
  constexpr int32 kChunkElements = SharedTile<T, kRows, kCols>::kChunkElements;
#pragma unroll
  for (int32 slab = 0; slab < Tile::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
#pragma unroll
      for (int32 number = 0; number < Tile::kTiles; ++number) {
        const int32 column = Tile::column(number, 0);
        T *chunk = reinterpret_cast<T *>(tile.chunk(Tile::row(slab, half), column / kChunkElements).words);
        *reinterpret_cast<Pair<T> *>(chunk + column % kChunkElements) = fragment.pairs[slab][number][half];
      }
}

} // namespace nsa
