// StripedTile<T, kRows, kCols, kWarps>: a tile whose rows each lie across all threads of the block. A row is cut into
// octets of 8 neighbouring columns, and thread t holds the octets t, t + kThreads, t + 2 * kThreads and so on. Eight
// 16-bit elements are 16 bytes, which a thread loads and stores with one access, and neighbouring threads access
// neighbouring memory. StripedColumns<T, kCols, kWarps>: one value per column, with the thread that holds the column.
// UniformRows<T, kRows, kWarps>: one value per row, in every thread.
//
// A reduction along the columns combines the columns of each thread, then the threads of each warp. If the block has
// several warps, write_partials_* writes the results of the warps to shared memory, and after a barrier read_partials_*
// combines them in the order of the warps. The order of the operations is fixed, so results repeat bit for bit.
#pragma once

#include "column.cuh"
#include "copy.cuh"

namespace nsa {

inline constexpr int32 kOctet = 8;

template <typename T, int32 kCols_, int32 kWarps_> struct Stripes {
  using Element = T;
  static constexpr bool kIsStriped = true;
  static constexpr int32 kCols = kCols_;
  static constexpr int32 kWarps = kWarps_;
  static constexpr int32 kThreads = kWarps * kWarpSize;
  static constexpr int32 kOctets = kCols / kOctet;
  static constexpr int32 kSteps = (kOctets + kThreads - 1) / kThreads;
  static_assert(kCols % kOctet == 0, "columns come in octets");

  // Returns whether the thread's octet of a step is a part of the row. The last step may have fewer octets than
  // threads.
  NSA_DEVICE static bool exists(int32 step) {
    return (step + 1) * kThreads <= kOctets || step * kThreads + static_cast<int32>(threadIdx.x) < kOctets;
  }

  // Returns the first column of the thread's octet of a step.
  NSA_DEVICE static int32 column(int32 step) { return (step * kThreads + static_cast<int32>(threadIdx.x)) * kOctet; }
};

template <typename T> struct alignas(16) Octet {
  Pair<T> pairs[kOctet / 2];
};

template <typename T, int32 kRows_, int32 kCols, int32 kWarps> struct StripedTile : Stripes<T, kCols, kWarps> {
  static constexpr int32 kRows = kRows_;

  Octet<T> octets[kRows][Stripes<T, kCols, kWarps>::kSteps];

  NSA_DEVICE T get(int32 row, int32 step, int32 index) const {
    return octets[row][step].pairs[index / 2].get(index % 2);
  }
};

template <typename T, int32 kCols, int32 kWarps> struct StripedColumns : Stripes<T, kCols, kWarps> {
  T values[Stripes<T, kCols, kWarps>::kSteps][kOctet];

  NSA_DEVICE T get(int32, int32 step, int32 index) const { return values[step][index]; }
};

template <typename T, int32 kRows_, int32 kWarps_> struct UniformRows {
  using Element = T;
  static constexpr bool kIsStriped = true;
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kWarps = kWarps_;

  T values[kRows];

  NSA_DEVICE T get(int32 row, int32, int32) const { return values[row]; }
};

template <typename Tile> inline constexpr bool kIsStriped = requires { Tile::kIsStriped; };
template <typename Tile> inline constexpr bool kIsStripedColumns = false;
template <typename T, int32 kCols, int32 kWarps>
inline constexpr bool kIsStripedColumns<StripedColumns<T, kCols, kWarps>> = true;
template <typename Tile> inline constexpr bool kIsUniformRows = false;
template <typename T, int32 kRows, int32 kWarps>
inline constexpr bool kIsUniformRows<UniformRows<T, kRows, kWarps>> = true;

// map of map.cuh for striped tiles and for their vectors.
template <typename Result, typename Function, typename... Inputs>
  requires kIsStriped<Result>
NSA_DEVICE Result map(const Function &function, const Inputs &...inputs) {
  static_assert(((Inputs::kWarps == Result::kWarps) && ...), "inputs and result of a map are on the same warps");
  Result result;
  if constexpr (kIsUniformRows<Result>) {
#pragma unroll
    for (int32 row = 0; row < Result::kRows; ++row)
      result.values[row] = call_with_row(function, row, inputs.values[row]...);
  } else if constexpr (kIsStripedColumns<Result>) {
#pragma unroll
    for (int32 step = 0; step < Result::kSteps; ++step)
#pragma unroll
      for (int32 index = 0; index < kOctet; ++index)
        result.values[step][index] =
            call_with_row(function, Result::column(step) + index, inputs.values[step][index]...);
  } else {
#pragma unroll
    for (int32 row = 0; row < Result::kRows; ++row)
#pragma unroll
      for (int32 step = 0; step < Result::kSteps; ++step)
#pragma unroll
        for (int32 index = 0; index < kOctet; index += 2) {
          const int32 column = Result::column(step) + index;
          const auto low = call_with_indices(function, row, column, inputs.get(row, step, index)...);
          const auto high = call_with_indices(function, row, column + 1, inputs.get(row, step, index + 1)...);
          result.octets[row][step].pairs[index / 2] = Pair<typename Result::Element>::make(low, high);
        }
  }
  return result;
}

// Returns how many columns of the thread's octet of a step are in the tile and have a number below `columns`. Where all
// threads have 8 such columns, the constant 8 is returned, so that no thread tests it at run time.
template <typename Tile> NSA_DEVICE int32 columns_of_octet(int32 step, int32 columns) {
  const int32 count = columns < Tile::kCols ? columns : Tile::kCols;
  return (step + 1) * Tile::kThreads * kOctet <= count ? kOctet : columns_from(Tile::column(step), count, kOctet);
}

// Calls move(row, step, offset, elements) for the octets of a tile of which at least one column has a number below
// `columns`. The thread's octet begins `offset` elements behind the data pointer, and has `elements` columns.
template <typename Tile, typename RowOf, typename Move>
NSA_DEVICE void for_each_octet(int32 columns, const RowOf &row_of, const Move &move) {
#pragma unroll
  for (int32 row = 0; row < Tile::kRows; ++row) {
    const Row place = row_of(row);
#pragma unroll
    for (int32 step = 0; step < Tile::kSteps; ++step)
      if (const int32 elements = columns_of_octet<Tile>(step, columns); place.exists && elements > 0)
        move(row, step, place.offset + Tile::column(step), elements);
  }
}

// load_fragment of copy.cuh. Octets of aligned rows are loaded with accesses of 16 bytes.
template <typename Result, typename T, int32 kRank, typename RowOf>
  requires kIsStriped<Result>
NSA_DEVICE Result load_fragment(const View<T, kRank> &view, int32 columns, const RowOf &row_of) {
  Result result = {};
  const auto by_element = [&](int32 row, int32 step, int64 offset, int32 elements) {
#pragma unroll
    for (int32 index = 0; index < kOctet; index += 2)
      result.octets[row][step].pairs[index / 2] = load_pair(view.data + offset + index, elements - index, false);
  };
  if (!view.rows_aligned()) {
    for_each_octet<Result>(columns, row_of, by_element);
    return result;
  }
  for_each_octet<Result>(columns, row_of, [&](int32 row, int32 step, int64 offset, int32 elements) {
    if (columns % kOctet == 0 || elements == kOctet)
      result.octets[row][step] = *reinterpret_cast<const Octet<T> *>(view.data + offset);
    else
      by_element(row, step, offset, elements);
  });
  return result;
}

// store_tile of copy.cuh. Octets of aligned rows are stored with accesses of 16 bytes.
template <typename T, int32 kRows, int32 kCols, int32 kWarps, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_tile(const StripedTile<T, kRows, kCols, kWarps> &tile, const View<T, kRank> &view, int32 columns,
                           const RowOf &row_of, const Places &...places) {
  using Tile = StripedTile<T, kRows, kCols, kWarps>;
  const auto placed = [&](int32 row) { return row_of(row, places.values[row]...); };
  const auto by_element = [&](int32 row, int32 step, int64 offset, int32 elements) {
#pragma unroll
    for (int32 index = 0; index < kOctet; index += 2)
      store_pair(view.data + offset + index, tile.octets[row][step].pairs[index / 2], elements - index, false);
  };
  if (!view.rows_aligned()) {
    for_each_octet<Tile>(columns, placed, by_element);
    return;
  }
  for_each_octet<Tile>(columns, placed, [&](int32 row, int32 step, int64 offset, int32 elements) {
    if (columns % kOctet == 0 || elements == kOctet)
      *reinterpret_cast<Octet<T> *>(view.data + offset) = tile.octets[row][step];
    else
      by_element(row, step, offset, elements);
  });
}

// The store to a view of gradients. One result of T that replaces is as wide as in the store above.
template <typename T, int32 kRows, int32 kCols, int32 kWarps, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_tile(const StripedTile<float, kRows, kCols, kWarps> &tile, const View<Gradient<T>, kRank> &view,
                           int32 columns, const RowOf &row_of, const Places &...places) {
  using Tile = StripedTile<float, kRows, kCols, kWarps>;
  if (view.is_plain()) {
    const auto rounded = map<StripedTile<T, kRows, kCols, kWarps>>([](float value) { return value; }, tile);
    store_tile(rounded, view.plain(), columns, row_of, places...);
    return;
  }
  const auto placed = [&](int32 row) { return row_of(row, places.values[row]...); };
  for_each_octet<Tile>(columns, placed, [&](int32 row, int32 step, int64 offset, int32 elements) {
#pragma unroll
    for (int32 index = 0; index < kOctet; index += 2)
      view.set_pair(offset + index, tile.octets[row][step].pairs[index / 2], elements - index);
  });
}

// load_rows and store_rows of copy.cuh. All threads load the element of each row, and the first thread stores it.
template <typename Result, typename T, int32 kRank, typename RowOf>
  requires kIsStriped<Result>
NSA_DEVICE Result load_rows(const View<T, kRank> &view, const RowOf &row_of) {
  Result result;
#pragma unroll
  for (int32 row = 0; row < Result::kRows; ++row) {
    const Row source = row_of(row);
    result.values[row] = source.exists ? view.data[source.offset] : T{};
  }
  return result;
}

template <typename T, int32 kRows, int32 kWarps, typename Stored, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_rows(const UniformRows<T, kRows, kWarps> &vector, const View<Stored, kRank> &view,
                           const RowOf &row_of, const Places &...places) {
#pragma unroll
  for (int32 row = 0; row < kRows; ++row) {
    const Row target = row_of(row, places.values[row]...);
    if (target.exists && threadIdx.x == 0)
      view.set(target.offset, vector.values[row]);
  }
}

// load_columns and store_columns of column.cuh.
template <typename Result, typename T, int32 kRank, typename RowOf>
  requires kIsStriped<Result>
NSA_DEVICE Result load_columns(const View<T, kRank> &view, const RowOf &row_of) {
  Result result = {};
#pragma unroll
  for (int32 step = 0; step < Result::kSteps; ++step)
    if (Result::exists(step))
#pragma unroll
      for (int32 index = 0; index < kOctet; ++index)
        if (const Row source = row_of(Result::column(step) + index); source.exists)
          result.values[step][index] = view.data[source.offset];
  return result;
}

template <typename T, int32 kCols, int32 kWarps, typename Stored, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_columns(const StripedColumns<T, kCols, kWarps> &vector, const View<Stored, kRank> &view,
                              const RowOf &row_of, const Places &...places) {
  using Vector = StripedColumns<T, kCols, kWarps>;
#pragma unroll
  for (int32 step = 0; step < Vector::kSteps; ++step)
    if (Vector::exists(step))
#pragma unroll
      for (int32 index = 0; index < kOctet; ++index)
        if (const Row target = row_of(Vector::column(step) + index, places.values[step][index]...); target.exists)
          view.set(target.offset, vector.values[step][index]);
}

// Combines the columns of row `row` that the threads of a warp hold. `neutral` combined with a value is the value.
template <int32 kRows, int32 kCols, int32 kWarps, typename Combine>
NSA_DEVICE float reduce_row_of_warp(const StripedTile<float, kRows, kCols, kWarps> &x, int32 row, float neutral,
                                    const Combine &combine) {
  float value = neutral;
#pragma unroll
  for (int32 step = 0; step < x.kSteps; ++step) {
    float octet = x.get(row, step, 0);
#pragma unroll
    for (int32 index = 1; index < kOctet; ++index)
      octet = combine(octet, x.get(row, step, index));
    value = combine(value, x.exists(step) ? octet : neutral);
  }
#pragma unroll
  for (int32 mask = 1; mask < kWarpSize; mask *= 2)
    value = combine(value, shuffle_xor(value, mask));
  return value;
}

// The sum of a number and -0 is the number. For max_number, NaN is such a neutral element.
inline constexpr float kNoSum = -0.0f;

template <int32 kRows, int32 kCols, typename Combine>
NSA_DEVICE UniformRows<float, kRows, 1> reduce_columns(const StripedTile<float, kRows, kCols, 1> &x, float neutral,
                                                       const Combine &combine) {
  UniformRows<float, kRows, 1> result;
#pragma unroll
  for (int32 row = 0; row < kRows; ++row)
    result.values[row] = reduce_row_of_warp(x, row, neutral, combine);
  return result;
}

template <typename Tile>
  requires kIsStriped<Tile>
NSA_DEVICE auto reduce_max(const Tile &x) {
  return reduce_columns(x, not_a_number(), Larger());
}
template <typename Tile>
  requires kIsStriped<Tile>
NSA_DEVICE auto reduce_add(const Tile &x) {
  return reduce_columns(x, kNoSum, Sum());
}

// The partial result of `warp` for a row.
template <int32 kRows, int32 kCols>
NSA_DEVICE float &row_partial_of(SharedTile<float, kRows, kCols> partials, int32 row, int32 warp) {
  return reinterpret_cast<float *>(partials.chunk(row, warp / 4).words)[warp % 4];
}

template <int32 kRows, int32 kCols, int32 kWarps, typename Partials, typename Combine>
NSA_DEVICE void write_row_partials(const StripedTile<float, kRows, kCols, kWarps> &x, Partials partials, float neutral,
                                   const Combine &combine) {
  static_assert(Partials::kRows >= kRows && Partials::kCols >= kWarps, "each row has an element for each warp");
#pragma unroll
  for (int32 row = 0; row < kRows; ++row) {
    const float value = reduce_row_of_warp(x, row, neutral, combine);
    if (threadIdx.x % kWarpSize == 0)
      row_partial_of(partials, row, threadIdx.x / kWarpSize) = value;
  }
}

template <typename Result, typename Partials, typename Combine>
NSA_DEVICE Result read_row_partials(Partials partials, const Combine &combine) {
  Result result;
#pragma unroll
  for (int32 row = 0; row < Result::kRows; ++row) {
    float value = row_partial_of(partials, row, 0);
#pragma unroll
    for (int32 warp = 1; warp < Result::kWarps; ++warp)
      value = combine(value, row_partial_of(partials, row, warp));
    result.values[row] = value;
  }
  return result;
}

template <typename Tile, typename Partials>
  requires kIsStriped<Tile>
NSA_DEVICE void write_partials_max(const Tile &x, Partials partials) {
  write_row_partials(x, partials, not_a_number(), Larger());
}
template <typename Tile, typename Partials>
  requires kIsStriped<Tile>
NSA_DEVICE void write_partials_add(const Tile &x, Partials partials) {
  write_row_partials(x, partials, kNoSum, Sum());
}

template <typename Result, typename Partials> NSA_DEVICE Result read_partials_max(Partials partials) {
  return read_row_partials<Result>(partials, Larger());
}
template <typename Result, typename Partials> NSA_DEVICE Result read_partials_add(Partials partials) {
  return read_row_partials<Result>(partials, Sum());
}

// A reduction along the rows: each thread holds all rows of its columns.
template <int32 kRows, int32 kCols, int32 kWarps, typename Combine>
NSA_DEVICE StripedColumns<float, kCols, kWarps> reduce_rows(const StripedTile<float, kRows, kCols, kWarps> &x,
                                                            const Combine &combine) {
  StripedColumns<float, kCols, kWarps> result;
#pragma unroll
  for (int32 step = 0; step < x.kSteps; ++step)
#pragma unroll
    for (int32 index = 0; index < kOctet; ++index) {
      float value = x.get(0, step, index);
#pragma unroll
      for (int32 row = 1; row < kRows; ++row)
        value = combine(value, x.get(row, step, index));
      result.values[step][index] = value;
    }
  return result;
}

template <typename Tile>
  requires kIsStriped<Tile>
NSA_DEVICE auto reduce_rows_max(const Tile &x) {
  return reduce_rows(x, Larger());
}
template <typename Tile>
  requires kIsStriped<Tile>
NSA_DEVICE auto reduce_rows_add(const Tile &x) {
  return reduce_rows(x, Sum());
}

} // namespace nsa
