// Index arithmetic for sm_90a: where in a swizzled tile the copy engine (TMA) writes an element, and the descriptor by
// which wgmma finds the tile (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"). No function of
// descriptor.cuh touches memory, so that a host test can compile the file.
//
// A tile is stored in shared memory as column chunks, one after the other. A column chunk is as wide as the swizzle
// (128, 64 or 32 bytes) and holds all rows of the tile. A TMA copy writes its box in the format of a column chunk if
// its tensor map has the same swizzle and the box is one column chunk wide. Eight consecutive rows of a column chunk
// form an atom. A column chunk begins at a multiple of the atom's size, 8 * swizzle bytes.
#pragma once

#include "types.cuh"

namespace nsa {

inline constexpr int32 kSwizzle128 = 128;
inline constexpr int32 kSwizzle64 = 64;
inline constexpr int32 kSwizzle32 = 32;

// The number of rows of an atom.
inline constexpr int32 kAtomRows = 8;

// The depth of one wgmma for 16-bit elements: 16 elements, 32 bytes.
inline constexpr int32 kWgmmaDepth = 16;
inline constexpr int32 kWgmmaRows = 64;

// The next four functions return the size of an atom in bytes, the number of columns in a column chunk, the number of
// column chunks in a tile, and the size of a column chunk in bytes.
NSA_DEVICE constexpr int32 atom_bytes(int32 swizzle) { return kAtomRows * swizzle; }

NSA_DEVICE constexpr int32 chunk_columns(int32 swizzle, int32 element_bytes) { return swizzle / element_bytes; }

NSA_DEVICE constexpr int32 chunk_count(int32 columns, int32 swizzle, int32 element_bytes) {
  return (columns * element_bytes + swizzle - 1) / swizzle;
}

NSA_DEVICE constexpr int32 chunk_bytes(int32 rows, int32 swizzle) { return rows * swizzle; }

// Returns the swizzled form of a byte offset within a column chunk. The swizzle XORs the bits of the offset from bit 4
// on with the bits from bit 7 on: 3 bits if the swizzle is 128 bytes wide, 2 bits for 64 bytes, and 1 bit for 32 bytes.
NSA_DEVICE constexpr int32 swizzled_offset(int32 offset, int32 swizzle) {
  return offset ^ ((offset >> 3) & (swizzle / 16 - 1) << 4);
}

// Returns the distance in bytes from the beginning of a tile to an element.
NSA_DEVICE constexpr int32 chunked_offset(int32 row, int32 column, int32 rows, int32 swizzle, int32 element_bytes) {
  const int32 byte = column * element_bytes;
  return byte / swizzle * chunk_bytes(rows, swizzle) + swizzled_offset(row * swizzle + byte % swizzle, swizzle);
}

// Makes a descriptor. The address and the distances in a descriptor are in units of 16 bytes. In a cluster the address
// of shared memory has the block's number from bit 24 on; a descriptor does not contain the block's number.
NSA_DEVICE constexpr uint64 matrix_descriptor(uint32 address, int32 leading_bytes, int32 stride_bytes, int32 swizzle) {
  const uint64 mode = swizzle == kSwizzle128 ? 1 : swizzle == kSwizzle64 ? 2 : 3;
  return static_cast<uint64>((address & 0x3ffff) >> 4) | static_cast<uint64>(leading_bytes >> 4) << 16 |
         static_cast<uint64>(stride_bytes >> 4) << 32 | mode << 62;
}

// Makes the descriptor of a K-major operand, whose stored rows run along the depth: a left operand, or a right operand
// that is stored transposed. The stride in a K-major descriptor is the distance from one atom to the next. For a
// K-major operand with a swizzle, wgmma ignores the leading distance.
NSA_DEVICE constexpr uint64 depth_major_descriptor(uint32 address, int32 swizzle) {
  return matrix_descriptor(address, 16, atom_bytes(swizzle), swizzle);
}

// Makes the descriptor of an MN-major operand, in which each stored row holds the elements of one depth. The leading
// distance in an MN-major descriptor is the distance from one column chunk to the next.
NSA_DEVICE constexpr uint64 row_depth_descriptor(uint32 address, int32 rows, int32 swizzle) {
  return matrix_descriptor(address, chunk_bytes(rows, swizzle), atom_bytes(swizzle), swizzle);
}

// Returns the number that, added to a descriptor, moves the descriptor's address forward by `bytes` bytes. The addition
// does not overflow the address field, because shared memory has fewer than 2^18 bytes.
NSA_DEVICE constexpr uint64 descriptor_step(int32 bytes) { return static_cast<uint64>(bytes >> 4); }

// Returns the distance in bytes from the beginning of a tile of 16-bit elements to the part of the tile that begins at
// `depth`, a multiple of kWgmmaDepth. The distance ignores the swizzle, because the hardware itself swizzles the
// addresses within an atom.
NSA_DEVICE constexpr int32 depth_major_offset(int32 depth, int32 rows, int32 swizzle) {
  const int32 byte = depth * 2;
  return byte / swizzle * chunk_bytes(rows, swizzle) + byte % swizzle;
}
NSA_DEVICE constexpr int32 row_depth_offset(int32 depth, int32 swizzle) { return depth * swizzle; }

} // namespace nsa
