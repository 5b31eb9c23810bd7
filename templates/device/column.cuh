// ColumnVector<T, kCols>: one value per column of a tile. Every thread holds the values of the columns of which it
// holds elements in a fragment (layout.cuh), so the eight lanes of a warp that share a column, and all warps, hold the
// same values. In a map (map.cuh) a column vector acts as a fragment whose rows all equal the column vector.
//
// A reduction along the rows of a fragment combines the rows of each warp first, in a fixed order. If several warps
// hold the fragment, write_partials_* writes the results of the warps to shared memory, and after a barrier
// read_partials_* combines them in the order of the warps.
#pragma once

#include "map.cuh"
#include "ptx_warp.cuh"
#include "shared_tile.cuh"
#include "view.cuh"

namespace nsa {

template <typename T, int32 kCols_> struct ColumnVector {
  using Element = T;
  static constexpr int32 kCols = kCols_;
  static constexpr int32 kTiles = kCols / kTileColumns;
  static_assert(kCols % kTileColumns == 0, "columns come in tiles of 8");

  T values[kTiles][2]; // [column tile][index]

  NSA_DEVICE static int32 column(int32 tile, int32 index) { return fragment_column(threadIdx.x, tile, index); }
};

template <typename Tile> inline constexpr bool kIsColumnVector = false;
template <typename T, int32 kCols> inline constexpr bool kIsColumnVector<ColumnVector<T, kCols>> = true;

// A column vector as an input of a map whose result is a fragment.
template <typename Result, typename T> struct WidenedColumns {
  static constexpr int32 kRows = Result::kRows;
  static constexpr int32 kWarps = Result::kWarps;
  const ColumnVector<T, Result::kCols> &vector;

  NSA_DEVICE T get(int32, int32 tile, int32, int32 index) const { return vector.values[tile][index]; }
};

template <typename Result, typename Input> NSA_DEVICE const Input &widened(const Input &input) { return input; }
template <typename Result, typename T>
NSA_DEVICE WidenedColumns<Result, T> widened(const ColumnVector<T, Result::kCols> &vector) {
  return {vector};
}

// The function of a map to a column vector may have the number of the column as a further parameter.
template <typename Result, typename Function, typename... Inputs>
  requires(kIsColumnVector<Result> || (kIsColumnVector<Inputs> || ...))
NSA_DEVICE Result map(const Function &function, const Inputs &...inputs) {
  if constexpr (kIsColumnVector<Result>) {
    Result result;
#pragma unroll
    for (int32 tile = 0; tile < Result::kTiles; ++tile)
#pragma unroll
      for (int32 index = 0; index < 2; ++index)
        result.values[tile][index] =
            call_with_row(function, Result::column(tile, index), inputs.values[tile][index]...);
    return result;
  } else {
    return map<Result>(function, widened<Result>(inputs)...);
  }
}

// Loads one element for each column of a tile. `row_of` returns the place of the element for a column. A warp holds
// each column eight times. Each lane computes the place of one column in 32 and loads its element, and the lanes then
// hand the elements on: a shuffle is one instruction, and a place takes about 30.
template <typename Result, typename T, int32 kRank, typename RowOf>
NSA_DEVICE Result load_columns(const View<T, kRank> &view, const RowOf &row_of) {
  constexpr int32 kLoads = (Result::kCols + kWarpSize - 1) / kWarpSize;
  T loaded[kLoads];
#pragma unroll
  for (int32 load = 0; load < kLoads; ++load) {
    constexpr int32 kLastColumns = Result::kCols - (kLoads - 1) * kWarpSize;
    const int32 lane = static_cast<int32>(threadIdx.x % kWarpSize);
    const Row source = row_of(load * kWarpSize + (load == kLoads - 1 ? lane % kLastColumns : lane));
    loaded[load] = source.exists ? view.data[source.offset] : T{};
  }
  Result result;
#pragma unroll
  for (int32 tile = 0; tile < Result::kTiles; ++tile)
#pragma unroll
    for (int32 index = 0; index < 2; ++index)
      result.values[tile][index] =
          shuffle(loaded[tile * kTileColumns / kWarpSize], Result::column(tile, index) % kWarpSize);
  return result;
}

// Stores one element for each column of a tile; the first four threads of the block write. The elements of the column
// vectors in `places` are further arguments of `row_of`, as in store_rows (copy.cuh).
template <typename T, int32 kCols, typename Stored, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_columns(const ColumnVector<T, kCols> &vector, const View<Stored, kRank> &view,
                              const RowOf &row_of, const Places &...places) {
  using Vector = ColumnVector<T, kCols>;
#pragma unroll
  for (int32 tile = 0; tile < Vector::kTiles; ++tile)
#pragma unroll
    for (int32 index = 0; index < 2; ++index) {
      const Row target = row_of(Vector::column(tile, index), places.values[tile][index]...);
      if (target.exists && threadIdx.x < 4)
        view.set(target.offset, vector.values[tile][index]);
    }
}

// Combines the rows that the warp holds: a thread's own rows first, then the rows of the eight lanes of a column.
template <int32 kRows, int32 kCols, int32 kWarps, typename Combine>
NSA_DEVICE ColumnVector<float, kCols> reduce_rows_of_warp(const Fragment<float, kRows, kCols, kWarps> &x,
                                                          const Combine &combine) {
  ColumnVector<float, kCols> result;
#pragma unroll
  for (int32 tile = 0; tile < result.kTiles; ++tile)
#pragma unroll
    for (int32 index = 0; index < 2; ++index) {
      float value = combine(x.get(0, tile, 0, index), x.get(0, tile, 1, index));
#pragma unroll
      for (int32 slab = 1; slab < x.kSlabs; ++slab)
        value = combine(value, combine(x.get(slab, tile, 0, index), x.get(slab, tile, 1, index)));
#pragma unroll
      for (int32 mask = 4; mask < kWarpSize; mask *= 2)
        value = combine(value, shuffle_xor(value, mask));
      result.values[tile][index] = value;
    }
  return result;
}

// The place of the thread's two columns of a column tile in the partial result of `warp`.
template <int32 kRows, int32 kCols>
NSA_DEVICE Pair<float> &partial_of(SharedTile<float, kRows, kCols> partials, int32 warp, int32 tile) {
  const int32 column = fragment_column(threadIdx.x, tile, 0);
  return *reinterpret_cast<Pair<float> *>(partials.chunk(warp, column / 4).words + column % 4);
}

template <int32 kRows, int32 kCols, int32 kWarps, int32 kPartials, typename Combine>
NSA_DEVICE void write_partials(const Fragment<float, kRows, kCols, kWarps> &x,
                               SharedTile<float, kPartials, kCols> partials, const Combine &combine) {
  static_assert(kPartials >= kWarps, "each warp has a row for its partial result");
  const ColumnVector<float, kCols> own = reduce_rows_of_warp(x, combine);
  if (threadIdx.x % kWarpSize < 4)
#pragma unroll
    for (int32 tile = 0; tile < own.kTiles; ++tile)
      partial_of(partials, threadIdx.x / kWarpSize, tile) = Pair<float>::make(own.values[tile][0], own.values[tile][1]);
}

template <int32 kWarps, int32 kCols, int32 kPartials, typename Combine>
NSA_DEVICE ColumnVector<float, kCols> read_partials(SharedTile<float, kPartials, kCols> partials,
                                                    const Combine &combine) {
  ColumnVector<float, kCols> result;
#pragma unroll
  for (int32 tile = 0; tile < result.kTiles; ++tile) {
    Pair<float> sum = partial_of(partials, 0, tile);
#pragma unroll
    for (int32 warp = 1; warp < kWarps; ++warp) {
      const Pair<float> next = partial_of(partials, warp, tile);
      sum = Pair<float>::make(combine(sum.get(0), next.get(0)), combine(sum.get(1), next.get(1)));
    }
    result.values[tile][0] = sum.get(0);
    result.values[tile][1] = sum.get(1);
  }
  return result;
}

struct Larger {
  NSA_DEVICE float operator()(float a, float b) const { return max_number(a, b); }
};
struct Sum {
  NSA_DEVICE float operator()(float a, float b) const { return a + b; }
};

template <typename Tile> NSA_DEVICE auto reduce_rows_max(const Tile &x) { return reduce_rows_of_warp(x, Larger()); }
template <typename Tile> NSA_DEVICE auto reduce_rows_add(const Tile &x) { return reduce_rows_of_warp(x, Sum()); }

template <typename Tile, typename Partials> NSA_DEVICE void write_partials_max(const Tile &x, Partials partials) {
  write_partials(x, partials, Larger());
}
template <typename Tile, typename Partials> NSA_DEVICE void write_partials_add(const Tile &x, Partials partials) {
  write_partials(x, partials, Sum());
}

template <int32 kWarps, typename Partials> NSA_DEVICE auto read_partials_max(Partials partials) {
  return read_partials<kWarps>(partials, Larger());
}
template <int32 kWarps, typename Partials> NSA_DEVICE auto read_partials_add(Partials partials) {
  return read_partials<kWarps>(partials, Sum());
}

} // namespace nsa
