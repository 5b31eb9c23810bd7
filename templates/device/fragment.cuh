// Fragment<T, kRows, kCols, kWarps>: a tile of kRows x kCols elements in the registers of kWarps warps, in the layout
// of layout.cuh. RowVector<T, kRows, kWarps>: one value per row of a tile. All four lanes that share a row hold the
// value of the row. Fragment and RowVector are value types. Each row of a Fragment belongs to a single warp, so no
// function of fragment.cuh needs a barrier.
#pragma once

#include "layout.cuh"
#include "pair.cuh"

namespace nsa {

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

  NSA_DEVICE T get(int32 slab, int32 tile, int32 half, int32 index) const { return pairs[slab][tile][half].get(index); }
};

template <typename T, int32 kRows_, int32 kWarps_> struct RowVector {
  using Element = T;
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kWarps = kWarps_;
  static constexpr int32 kSlabs = kRows / (kSlabRows * kWarps);
  static_assert(kRows % (kSlabRows * kWarps) == 0, "every warp holds whole slabs of 16 rows");

  T values[kSlabs][2]; // [slab][half]

  NSA_DEVICE static int32 row(int32 slab, int32 half) { return fragment_row(threadIdx.x, kSlabs, slab, half); }

  // RowVector::get has the same parameters as Fragment::get, so that map (map.cuh) accepts both types as inputs.
  // RowVector::get returns the value of the row for every column.
  NSA_DEVICE T get(int32 slab, int32, int32 half, int32) const { return values[slab][half]; }
};

template <typename Tile> inline constexpr bool kIsRowVector = false;
template <typename T, int32 kRows, int32 kWarps> inline constexpr bool kIsRowVector<RowVector<T, kRows, kWarps>> = true;

} // namespace nsa
