// Index arithmetic of tiles: which elements of a fragment a thread holds, and at which address a shared tile stores an
// element. No function of layout.cuh touches memory. tests/unit/device compiles layout.cuh on the host.
//
// Fragment layout (PTX ISA, "Matrix Fragments for mma.m16n8k16"): a tile is cut into slabs of 16 rows and into column
// tiles of 8. Lane 4*g + t of a warp holds columns 2*t and 2*t + 1 of row g (half 0) and of row g + 8 (half 1).
// Accumulators and 16-bit left operands have the same layout: two neighbouring column tiles of an accumulator form a
// left operand of depth 16.
#pragma once

#include "types.cuh"

namespace nsa {

inline constexpr int32 kSlabRows = 16;
inline constexpr int32 kTileColumns = 8;

// Returns the row of the tile that a thread holds in a given slab of its warp and a given half.
NSA_DEVICE constexpr int32 fragment_row(int32 thread, int32 slabs_per_warp, int32 slab, int32 half) {
  const int32 warp = thread / kWarpSize;
  const int32 lane = thread % kWarpSize;
  return (warp * slabs_per_warp + slab) * kSlabRows + half * 8 + lane / 4;
}

// Returns the column of the tile that a thread holds in a given column tile. `index`, 0 or 1, chooses one of the
// thread's two columns.
NSA_DEVICE constexpr int32 fragment_column(int32 thread, int32 tile, int32 index) {
  return tile * kTileColumns + thread % 4 * 2 + index;
}

inline constexpr int32 kChunkBytes = 16;

// Shared tiles are rows of 16-byte chunks. ldmatrix reads one column of chunks in 8 rows at a time. The read has no
// bank conflict if the positions of those 8 chunks differ modulo 8 (8 chunks are 32 banks). Without a swizzle, if the
// number of chunks in a row is 2^e times an odd number, the chunks of 8 rows are at only 8 / 2^e different positions
// modulo 8. An XOR of the chunk number with the next e bits of the row number gives different positions to rows that
// would otherwise have the same position.
NSA_DEVICE constexpr int32 swizzle_bits(int32 chunks_per_row) {
  int32 bits = 0;
  while (bits < 3 && chunks_per_row % (2 << bits) == 0)
    ++bits;
  return bits;
}

// The swizzle reorders chunks only within aligned groups; returns the number of chunks in a group.
NSA_DEVICE constexpr int32 swizzle_group(int32 chunks_per_row) { return 1 << swizzle_bits(chunks_per_row); }

// Returns the number whose XOR with the number of a chunk gives the chunk's position in its row.
NSA_DEVICE constexpr int32 swizzle(int32 row, int32 chunks_per_row) {
  const int32 bits = swizzle_bits(chunks_per_row);
  return (row >> (3 - bits)) & ((1 << bits) - 1);
}

// Returns the position of a chunk in a shared tile, counted in chunks from the beginning of the tile.
NSA_DEVICE constexpr int32 swizzled_chunk(int32 row, int32 chunk, int32 chunks_per_row) {
  return row * chunks_per_row + (chunk ^ swizzle(row, chunks_per_row));
}

} // namespace nsa
