// Tiles between global memory and shared memory or registers, row by row.
// `row_of(r)` says where row r of the tile lies and whether it exists (view.cuh). Rows that do not exist, and columns
// from `columns` on, are zero when loaded and left alone when stored; their memory is never touched.
// Whether a row may be moved in 16-byte pieces is the view's run-time flag; the other path goes element by element.
#pragma once

#include "map.cuh"
#include "ptx_copy.cuh"
#include "shared_tile.cuh"
#include "view.cuh"

namespace nsa {

// Sixteen bytes, element by element.
template <typename T> NSA_DEVICE Chunk gather_chunk(const T *source, int32 elements) {
  constexpr int32 kPerWord = 4 / static_cast<int32>(sizeof(T));
  Chunk result;
#pragma unroll
  for (int32 word = 0; word < 4; ++word) {
    uint32 bits = 0;
#pragma unroll
    for (int32 i = 0; i < kPerWord; ++i) {
      const int32 element = word * kPerWord + i;
      if (element < elements) {
        if constexpr (kPerWord == 2)
          bits |= static_cast<uint32>(source[element].bits) << (16 * i);
        else
          bits = __float_as_uint(source[element]);
      }
    }
    result.words[word] = bits;
  }
  return result;
}

// Global to shared by all kThreads threads of the block. With 16-byte rows the copies are asynchronous: commit and wait
// for them (ptx_copy.cuh), then synchronise the block. Nobody may still be reading the tile.
template <int32 kThreads, typename T, int32 kRows, int32 kCols, int32 kRank, typename RowOf>
NSA_DEVICE void load_tile(SharedTile<T, kRows, kCols> tile, const View<T, kRank> &view, int32 columns,
                          const RowOf &row_of) {
  using Tile = SharedTile<T, kRows, kCols>;
  constexpr int32 kChunks = kRows * Tile::kChunksPerRow;
  constexpr int32 kSteps = (kChunks + kThreads - 1) / kThreads;
  constexpr int32 kUnroll = kSteps <= 16 ? kSteps : 8;

  if (view.rows_aligned()) {
#pragma unroll kUnroll
    for (int32 step = 0; step < kSteps; ++step) {
      const int32 index = step * kThreads + static_cast<int32>(threadIdx.x);
      if (kChunks % kThreads != 0 && index >= kChunks)
        break;
      const int32 row = index / Tile::kChunksPerRow;
      const int32 chunk = index % Tile::kChunksPerRow;
      const Row source = row_of(row);
      const int32 elements =
          source.exists ? columns_from(chunk * Tile::kChunkElements, columns, Tile::kChunkElements) : 0;
      // A copy of nothing still wants an address; the base is one that exists.
      const T *address = elements > 0 ? view.data + source.offset + chunk * Tile::kChunkElements : view.data;
      cp_async_16(tile.address(row, chunk), address, elements * static_cast<int32>(sizeof(T)));
    }
  } else {
#pragma unroll 1
    for (int32 index = threadIdx.x; index < kChunks; index += kThreads) {
      const int32 row = index / Tile::kChunksPerRow;
      const int32 chunk = index % Tile::kChunksPerRow;
      const Row source = row_of(row);
      const int32 elements =
          source.exists ? columns_from(chunk * Tile::kChunkElements, columns, Tile::kChunkElements) : 0;
      tile.chunk(row, chunk) = gather_chunk(view.data + source.offset + chunk * Tile::kChunkElements, elements);
    }
  }
}

// Calls move(tile, elements, pair) for the column tiles of a row that have columns below `columns`: `elements` is how
// many of the thread's two columns exist, and `pair` whether one access may move both. Where a whole tile exists, which
// is known when compiling, nothing is asked per thread.
template <typename Tile, typename Move> NSA_DEVICE void for_each_pair(bool aligned, int32 columns, const Move &move) {
#pragma unroll
  for (int32 tile = 0; tile < Tile::kTiles; ++tile) {
    if ((tile + 1) * kTileColumns <= columns)
      move(tile, 2, aligned);
    else if (tile * kTileColumns < columns)
      move(tile, columns_from(Tile::column(tile, 0), columns, 2), false);
  }
}

// Global to registers: each thread reads what it holds.
template <typename Result, typename T, int32 kRank, typename RowOf>
NSA_DEVICE Result load_fragment(const View<T, kRank> &view, int32 columns, const RowOf &row_of) {
  auto result = splat<Result>(T{});
#pragma unroll
  for (int32 slab = 0; slab < Result::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Row row = row_of(Result::row(slab, half));
      if (!row.exists)
        continue;
      const T *source = view.data + row.offset + Result::column(0, 0);
      const auto move = [&](int32 tile, int32 elements, bool pair) {
        result.pairs[slab][tile][half] = load_pair(source + tile * kTileColumns, elements, pair);
      };
      if (view.rows_aligned())
        for_each_pair<Result>(true, columns, move);
      else
        for_each_pair<Result>(false, columns, move);
    }
  return result;
}

// Registers to global.
template <typename T, int32 kRows, int32 kCols, int32 kWarps, int32 kRank, typename RowOf>
NSA_DEVICE void store_tile(const Fragment<T, kRows, kCols, kWarps> &fragment, const View<T, kRank> &view, int32 columns,
                           const RowOf &row_of) {
  using Tile = Fragment<T, kRows, kCols, kWarps>;
#pragma unroll
  for (int32 slab = 0; slab < Tile::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Row row = row_of(Tile::row(slab, half));
      if (!row.exists)
        continue;
      T *target = view.data + row.offset + Tile::column(0, 0);
      const auto move = [&](int32 tile, int32 elements, bool pair) {
        store_pair(target + tile * kTileColumns, fragment.pairs[slab][tile][half], elements, pair);
      };
      if (view.rows_aligned())
        for_each_pair<Tile>(true, columns, move);
      else
        for_each_pair<Tile>(false, columns, move);
    }
}

// One element per row. All four lanes of a row read it; one of them writes it.
template <typename Result, typename T, int32 kRank, typename RowOf>
NSA_DEVICE Result load_rows(const View<T, kRank> &view, const RowOf &row_of) {
  Result result;
#pragma unroll
  for (int32 slab = 0; slab < Result::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Row source = row_of(Result::row(slab, half));
      result.values[slab][half] = source.exists ? view.data[source.offset] : T{};
    }
  return result;
}

template <typename T, int32 kRows, int32 kWarps, int32 kRank, typename RowOf>
NSA_DEVICE void store_rows(const RowVector<T, kRows, kWarps> &vector, const View<T, kRank> &view, const RowOf &row_of) {
  using Vector = RowVector<T, kRows, kWarps>;
#pragma unroll
  for (int32 slab = 0; slab < Vector::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Row target = row_of(Vector::row(slab, half));
      if (target.exists && threadIdx.x % 4 == 0)
        view.data[target.offset] = vector.values[slab][half];
    }
}

} // namespace nsa
