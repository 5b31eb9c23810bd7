// Index arithmetic of tiles: which elements of a fragment a thread holds, and at which address a shared tile stores an
// element. No function of layout.cuh touches memory. tests/unit/device compiles layout.cuh on the host.
//
// Fragment layout (PTX ISA, "Matrix Fragments for mma.m16n8k16"): a tile is cut into slabs of 16 rows and into column
// tiles of 8. In each slab and column tile, lane 4*g + t of a warp holds columns 2*t and 2*t + 1 of row g (half 0) and
// of row g + 8 (half 1). Accumulators and 16-bit left operands have the same layout: two neighbouring column tiles of
// an accumulator form a left operand of depth 16.
#pragma once

#include "types.cuh"

namespace nsa {

inline constexpr int32 kSlabRows = 16;
inline constexpr int32 kTileColumns = 8;

// Returns the number of a row that `thread` holds. `slab` is the number of the row's slab within the thread's warp.
// `half` is 0 for the first 8 rows of the slab and 1 for the last 8 rows.
NSA_DEVICE constexpr int32 fragment_row(int32 thread, int32 slabs_per_warp, int32 slab, int32 half) {
  const int32 warp = thread / kWarpSize;
  const int32 lane = thread % kWarpSize;
  return (warp * slabs_per_warp + slab) * kSlabRows + half * 8 + lane / 4;
}

// Returns the number of a column that `thread` holds in column tile `tile`. A thread holds two columns of each column
// tile, and `index` (0 or 1) chooses one of the two.
NSA_DEVICE constexpr int32 fragment_column(int32 thread, int32 tile, int32 index) {
  return tile * kTileColumns + thread % 4 * 2 + index;
}

inline constexpr int32 kChunkBytes = 16;

// Each row of a shared tile consists of 16-byte chunks. The instruction ldmatrix reads 8 chunks at a time: the chunk
// with the same number in each of 8 consecutive rows. Eight chunks cover all 32 banks of shared memory, so ldmatrix has
// no bank conflict if the positions of its 8 chunks differ modulo 8. Let 2^e be the largest of 1, 2, 4 and 8 that
// divides the number of chunks in a row. Without a swizzle, the 8 chunks that ldmatrix reads would be at only 8 / 2^e
// different positions modulo 8. The swizzle therefore XORs the number of each chunk with e bits of the number of its
// row, which makes all 8 positions different. Returns e.
NSA_DEVICE constexpr int32 swizzle_bits(int32 chunks_per_row) {
  int32 bits = 0;
  while (bits < 3 && chunks_per_row % (2 << bits) == 0)
    ++bits;
  return bits;
}

// The swizzle reorders the chunks of a row only within aligned groups of neighbouring chunks. Returns the number of
// chunks in a group.
NSA_DEVICE constexpr int32 swizzle_group(int32 chunks_per_row) { return 1 << swizzle_bits(chunks_per_row); }

// Returns the swizzle mask of a row: the number of a chunk XOR the mask is the chunk's position in the row.
NSA_DEVICE constexpr int32 swizzle(int32 row, int32 chunks_per_row) {
  const int32 bits = swizzle_bits(chunks_per_row);
  return (row >> (3 - bits)) & ((1 << bits) - 1);
}

// Returns the position of a chunk in a shared tile, counted in chunks from the beginning of the tile.
NSA_DEVICE constexpr int32 swizzled_chunk(int32 row, int32 chunk, int32 chunks_per_row) {
  return row * chunks_per_row + (chunk ^ swizzle(row, chunks_per_row));
}

} // namespace nsa
