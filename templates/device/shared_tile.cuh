// SharedTile<T, kRows, kCols>: a tile in shared memory whose rows are swizzled 16-byte chunks (layout.cuh). A
// SharedTile is a reference: the kernel's shared block owns the memory, and a copy refers to the same memory. The
// memory of a SharedTile begins at a multiple of 128 bytes.
#pragma once

#include "layout.cuh"
#include "ptx_copy.cuh"

namespace nsa {

struct alignas(kChunkBytes) Chunk {
  uint32 words[4];
};

// SharedCursor is the position, a row and a chunk, from which one thread reads a shared tile of kChunksPerRow chunks
// per row. A read adds an offset in rows and chunks to the position of the cursor. The offset of a read is the same for
// all threads, and is a compile-time constant once `at` is inlined. The offset in rows must be a multiple of 8, because
// the swizzle repeats every 8 rows. The offset in chunks must have no set bit in common with the chunk number of the
// cursor, so that XOR can replace the addition of chunk numbers. The swizzle XORs a number that depends on the row into
// the low bits of the chunk number. `at` can therefore apply the low bits of the offset in chunks by one XOR of the
// swizzled address. Reads whose offsets in chunks have the same low bits use the same XOR result. The high bits of the
// offset in chunks become the constant offset in the load instruction.
template <int32 kChunksPerRow> struct SharedCursor {
  uint32 first;

  // Returns the shared-memory address of the chunk that is `rows` rows and `chunks` chunks after the position of the
  // cursor.
  NSA_DEVICE uint32 at(int32 rows, int32 chunks) const {
    constexpr int32 kPermuted = swizzle_group(kChunksPerRow) - 1;
    return (first ^ static_cast<uint32>((chunks & kPermuted) * kChunkBytes)) +
           static_cast<uint32>((rows * kChunksPerRow + (chunks & ~kPermuted)) * kChunkBytes);
  }
};

template <typename T, int32 kRows_, int32 kCols_> struct SharedTile {
  using Element = T;
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kCols = kCols_;
  static constexpr int32 kChunkElements = kChunkBytes / static_cast<int32>(sizeof(T));
  static constexpr int32 kChunksPerRow = kCols / kChunkElements;
  static constexpr int32 kBytes = kRows * kCols * static_cast<int32>(sizeof(T));
  static_assert(kCols % kChunkElements == 0, "a row of a shared tile is a whole number of 16-byte chunks");
  static_assert(kRows % 8 == 0, "ldmatrix reads eight rows at a time");

  unsigned char *base;

  NSA_DEVICE explicit SharedTile(unsigned char *memory) : base(memory) {}

  // Returns the distance in bytes from `base` to a chunk.
  NSA_DEVICE static int32 byte_offset(int32 row, int32 chunk) {
    return swizzled_chunk(row, chunk, kChunksPerRow) * kChunkBytes;
  }

  NSA_DEVICE uint32 address(int32 row, int32 chunk) const { return shared_address(base) + byte_offset(row, chunk); }

  NSA_DEVICE SharedCursor<kChunksPerRow> cursor(int32 row, int32 chunk) const { return {address(row, chunk)}; }

  NSA_DEVICE Chunk &chunk(int32 row, int32 chunk) const {
    return *reinterpret_cast<Chunk *>(base + byte_offset(row, chunk));
  }

  // Returns the part of the tile from `row` on. `row` is a multiple of 8, because the swizzle repeats every 8 rows.
  NSA_DEVICE SharedTile from_row(int32 row) const { return SharedTile(base + row * kChunksPerRow * kChunkBytes); }
};

// Returns the part of a shared tile that holds the kCount rows from `first` on. `first` is a multiple of 8.
template <int32 kCount, typename T, int32 kRows, int32 kCols>
NSA_DEVICE SharedTile<T, kCount, kCols> rows_of(SharedTile<T, kRows, kCols> tile, int32 first) {
  static_assert(kCount <= kRows, "a part of a tile has no more rows than the tile");
  return SharedTile<T, kCount, kCols>(tile.from_row(first).base);
}

template <typename Tile> inline constexpr bool kIsSharedTile = false;
template <typename T, int32 kRows, int32 kCols> inline constexpr bool kIsSharedTile<SharedTile<T, kRows, kCols>> = true;

} // namespace nsa
