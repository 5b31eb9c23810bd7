// Index arithmetic of sm_90a: where the copy engine puts an element of a swizzled tile, and the descriptor by which
// wgmma finds it (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
// Nothing here touches memory, so that a host test can compile it.
//
// A tile stands in shared memory as column chunks, one after the other. A chunk is as wide as the swizzle, 128, 64 or
// 32 bytes, and holds all rows of the tile: it is what a tensor map with that swizzle writes for a box of one chunk.
// Eight rows of it are an atom. Chunks begin on multiples of the atom's alignment, 8 * swizzle bytes.
#pragma once

#include "types.cuh"

namespace nsa {

inline constexpr int32 kSwizzle128 = 128;
inline constexpr int32 kSwizzle64 = 64;
inline constexpr int32 kSwizzle32 = 32;

// Rows of an atom.
inline constexpr int32 kAtomRows = 8;

// What one wgmma takes of the depth, for 16-bit elements: 32 bytes.
inline constexpr int32 kWgmmaDepth = 16;
inline constexpr int32 kWgmmaRows = 64;

NSA_DEVICE constexpr int32 atom_bytes(int32 swizzle) { return kAtomRows * swizzle; }

NSA_DEVICE constexpr int32 chunk_columns(int32 swizzle, int32 element_bytes) { return swizzle / element_bytes; }

NSA_DEVICE constexpr int32 chunk_count(int32 columns, int32 swizzle, int32 element_bytes) {
  return (columns * element_bytes + swizzle - 1) / swizzle;
}

NSA_DEVICE constexpr int32 chunk_bytes(int32 rows, int32 swizzle) { return rows * swizzle; }

// The swizzle of an offset within a chunk: 16-byte units change places by the bits from 7 on.
NSA_DEVICE constexpr int32 swizzled_offset(int32 offset, int32 swizzle) {
  return offset ^ ((offset >> 3) & (swizzle / 16 - 1) << 4);
}

// Bytes from the tile's beginning to an element.
NSA_DEVICE constexpr int32 chunked_offset(int32 row, int32 column, int32 rows, int32 swizzle, int32 element_bytes) {
  const int32 byte = column * element_bytes;
  return byte / swizzle * chunk_bytes(rows, swizzle) + swizzled_offset(row * swizzle + byte % swizzle, swizzle);
}

// The fields of a descriptor: addresses and strides in units of 16 bytes. In a cluster an address has the block's
// number from bit 24 on, which is no part of it here.
NSA_DEVICE constexpr uint64 matrix_descriptor(uint32 address, int32 leading_bytes, int32 stride_bytes, int32 swizzle) {
  const uint64 mode = swizzle == kSwizzle128 ? 1 : swizzle == kSwizzle64 ? 2 : 3;
  return static_cast<uint64>((address & 0x3ffff) >> 4) | static_cast<uint64>(leading_bytes >> 4) << 16 |
         static_cast<uint64>(stride_bytes >> 4) << 32 | mode << 62;
}

// An operand whose depth runs along the rows of the tile as it is stored (K-major): the left operand, and a right one
// stored transposed. The stride is from atom to atom; the other field is not read.
NSA_DEVICE constexpr uint64 depth_major_descriptor(uint32 address, int32 swizzle) {
  return matrix_descriptor(address, 16, atom_bytes(swizzle), swizzle);
}

// An operand whose rows are the depth (MN-major). The leading distance is from chunk to chunk.
NSA_DEVICE constexpr uint64 row_depth_descriptor(uint32 address, int32 rows, int32 swizzle) {
  return matrix_descriptor(address, chunk_bytes(rows, swizzle), atom_bytes(swizzle), swizzle);
}

// What to add to a descriptor for an operand that begins `bytes` later. Shared memory has fewer than 2^18 bytes: no
// carry leaves the address.
NSA_DEVICE constexpr uint64 descriptor_step(int32 bytes) { return static_cast<uint64>(bytes >> 4); }

// Bytes from the tile's beginning to its part from `depth` on, a multiple of kWgmmaDepth, for 16-bit elements.
// Within an atom the hardware swizzles the address itself, so the part begins at the plain place.
NSA_DEVICE constexpr int32 depth_major_offset(int32 depth, int32 rows, int32 swizzle) {
  const int32 byte = depth * 2;
  return byte / swizzle * chunk_bytes(rows, swizzle) + byte % swizzle;
}
NSA_DEVICE constexpr int32 row_depth_offset(int32 depth, int32 swizzle) { return depth * swizzle; }

} // namespace nsa
