// Fragment<T, kRows, kCols, kWarps>: a tile in the registers of kWarps warps, in the layout of layout.cuh.
// RowVector<T, kRows, kWarps>: one value per row, held by all four lanes that share the row.
// Both are values; a warp's rows are its own, so nothing here needs a barrier.
#pragma once

#include "layout.cuh"
#include "ptx_convert.cuh"

namespace nsa {

// Two neighbouring columns of a row: one register for 16-bit types, as mma wants them.
template <typename T> struct alignas(2 * sizeof(T)) Pair {
  T values[2];

  NSA_DEVICE static Pair make(T low, T high) { return {{low, high}}; }
  NSA_DEVICE T get(int32 index) const { return values[index]; }
};

template <typename T>
  requires kIsHalf<T>
struct Pair<T> {
  uint32 bits;

  NSA_DEVICE static Pair make(T low, T high) {
    return {static_cast<uint32>(low.bits) | static_cast<uint32>(high.bits) << 16};
  }
  NSA_DEVICE static Pair make(float low, float high) {
    if constexpr (kSameType<T, bf16>)
      return {pack_bf16(low, high)};
    else
      return {pack_f16(low, high)};
  }
  NSA_DEVICE T get(int32 index) const { return T{static_cast<uint16>(bits >> (16 * index))}; }
};

template <typename T, int32 kRows_, int32 kCols_, int32 kWarps_> struct Fragment {
  using Element = T;
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kCols = kCols_;
  static constexpr int32 kWarps = kWarps_;
  static constexpr int32 kSlabs = kRows / (kSlabRows * kWarps);
  static constexpr int32 kTiles = kCols / kTileColumns;
  static_assert(kRows % (kSlabRows * kWarps) == 0, "every warp holds whole slabs of 16 rows");
  static_assert(kCols % kTileColumns == 0, "columns come in tiles of 8");

  Pair<T> pairs[kSlabs][kTiles][2]; // [slab][column tile][half]

  NSA_DEVICE static int32 row(int32 slab, int32 half) { return fragment_row(threadIdx.x, kSlabs, slab, half); }
  NSA_DEVICE static int32 column(int32 tile, int32 index) { return fragment_column(threadIdx.x, tile, index); }

  NSA_DEVICE T get(int32 slab, int32 tile, int32 half, int32 index) const {
    return pairs[slab][tile][half].get(index);
  }
};

template <typename T, int32 kRows_, int32 kWarps_> struct RowVector {
  using Element = T;
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kWarps = kWarps_;
  static constexpr int32 kSlabs = kRows / (kSlabRows * kWarps);
  static_assert(kRows % (kSlabRows * kWarps) == 0, "every warp holds whole slabs of 16 rows");

  T values[kSlabs][2]; // [slab][half]

  NSA_DEVICE static int32 row(int32 slab, int32 half) { return fragment_row(threadIdx.x, kSlabs, slab, half); }

  // A row's value stands for all of its columns.
  NSA_DEVICE T get(int32 slab, int32, int32 half, int32) const { return values[slab][half]; }
};

template <typename Tile> inline constexpr bool kIsRowVector = false;
template <typename T, int32 kRows, int32 kWarps> inline constexpr bool kIsRowVector<RowVector<T, kRows, kWarps>> = true;

} // namespace nsa
