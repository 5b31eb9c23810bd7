// Copies tiles between global memory and shared memory or registers, row by row. The argument `row_of` is a function:
// row_of(r) returns the offset of row r of the tile in the tensor, and whether the row exists (struct Row in view.cuh).
// An element does not exist if its row does not exist or if the number of its column is `columns` or more. Elements
// that do not exist are loaded as zero and are not stored, and their memory is never accessed. A run-time flag of the
// View says whether the rows of the tensor are aligned, which means that all rows begin at multiples of 16 bytes. One
// access of a thread moves several elements of an aligned row. Rows that are not aligned are moved element by element.
#pragma once

#include "gradient.cuh"
#include "map.cuh"
#include "ptx_copy.cuh"
#include "ptx_warp.cuh"
#include "shared_tile.cuh"
#include "view.cuh"

namespace nsa {

// Loads four bytes of a row from global memory, element by element: one 32-bit element or two 16-bit elements. Only the
// first `elements` elements are read, and the rest of the returned word is zero.
template <typename T> NSA_DEVICE uint32 gather_word(const T *source, int32 elements) {
  if constexpr (sizeof(T) == 4)
    return elements > 0 ? __float_as_uint(*source) : 0;
  else
    return load_pair(source, elements, false).bits;
}

// EvenlySpaced marks a row function `row_of` for which the distance in memory from row r to row r + n is the same for
// every r. An EvenlySpaced row function also promises that no 32-bit coordinate overflows between rows. Evenly spaced
// rows let a thread add a constant distance from row to row instead of computing the offset of each row.
template <typename RowOf> struct EvenlySpaced {
  RowOf row_of;

  NSA_DEVICE Row operator()(int32 row) const { return row_of(row); }
};

template <typename RowOf> NSA_DEVICE EvenlySpaced<RowOf> evenly_spaced(const RowOf &row_of) { return {row_of}; }

template <typename RowOf> inline constexpr bool kIsEvenlySpaced = false;
template <typename RowOf> inline constexpr bool kIsEvenlySpaced<EvenlySpaced<RowOf>> = true;

// The variant of load_tile for aligned rows. Neighbouring threads copy neighbouring 16-byte chunks of a row. The number
// of threads that copy a row is the number of chunks in one group of the swizzle (swizzle_group). If a step of the loop
// advances by a multiple of 8 rows, each further chunk of a thread is at a constant distance from the thread's first
// chunk in shared memory.
template <int32 kThreads, typename T, int32 kRows, int32 kCols, int32 kRank, typename RowOf>
NSA_DEVICE void begin_copies(SharedTile<T, kRows, kCols> tile, const View<T, kRank> &view, int32 columns,
                             const RowOf &row_of) {
  using Tile = SharedTile<T, kRows, kCols>;
  constexpr int32 kLanes = swizzle_group(Tile::kChunksPerRow); // threads that copy one row
  constexpr int32 kRowStep = kThreads / kLanes;
  constexpr int32 kSteps = (kRows + kRowStep - 1) / kRowStep;
  constexpr bool kSwizzleRepeats = kRowStep % 8 == 0;
  const int32 lane = threadIdx.x % kLanes;
  const int32 first_row = threadIdx.x / kLanes;
  const uint32 first_target = tile.address(first_row, lane);
  // `pitch`, the distance in memory between consecutive rows of a thread, is computed from the thread's last two rows.
  // The offsets of the thread's first rows cannot be used: these rows may lie before the start of the tensor, and
  // View::at turns a negative coordinate into a large offset.
  constexpr int32 kLastStep = kSteps - 1;
  const Row last = row_of(first_row + kLastStep * kRowStep);
  int64 pitch = 0;
  if constexpr (kIsEvenlySpaced<RowOf> && kSteps > 1)
    pitch = last.offset - row_of(first_row + (kLastStep - 1) * kRowStep).offset;
  int64 offset = last.offset - kLastStep * pitch;

#pragma unroll
  for (int32 step = 0; step < kSteps; ++step) {
    const int32 row = first_row + step * kRowStep;
    if (kRows % kRowStep != 0 && row >= kRows)
      break;
    Row source = row_of(row);
    if constexpr (kIsEvenlySpaced<RowOf>)
      source.offset = offset;
    offset += pitch;
    const T *data = view.data + source.offset + lane * Tile::kChunkElements;
#pragma unroll
    for (int32 chunk = 0; chunk < Tile::kChunksPerRow; chunk += kLanes) {
      const int32 first_column = chunk * Tile::kChunkElements;
      const int32 elements =
          kCols == columns ? Tile::kChunkElements
                           : columns_from(first_column + lane * Tile::kChunkElements, columns, Tile::kChunkElements);
      const uint32 target = kSwizzleRepeats
                                ? first_target + (step * kRowStep * Tile::kChunksPerRow + chunk) * kChunkBytes
                                : tile.address(row, chunk + lane);
      cp_async_16(target, data + first_column, source.exists ? elements * static_cast<int32>(sizeof(T)) : 0);
    }
  }
}

// All kThreads threads of the block load a tile from global memory to shared memory. Aligned rows are copied
// asynchronously: after the call of load_tile, the caller commits the copies, waits for them (ptx_copy.cuh) and
// synchronises the block. When load_tile is called, no thread may still be reading the previous contents of the tile.
template <int32 kThreads, typename T, int32 kRows, int32 kCols, int32 kRank, typename RowOf>
NSA_DEVICE void load_tile(SharedTile<T, kRows, kCols> tile, const View<T, kRank> &view, int32 columns,
                          const RowOf &row_of) {
  if (view.rows_aligned()) {
    begin_copies<kThreads>(tile, view, columns, row_of);
    return;
  }
  constexpr int32 kWordElements = 4 / static_cast<int32>(sizeof(T));
  constexpr int32 kWordsPerRow = kCols / kWordElements;
#pragma unroll 1
  for (int32 index = threadIdx.x; index < kRows * kWordsPerRow; index += kThreads) {
    const int32 row = index / kWordsPerRow;
    const int32 word = index % kWordsPerRow;
    const int32 column = word * kWordElements;
    const Row source = row_of(row);
    tile.chunk(row, word / 4).words[word % 4] =
        gather_word(view.data + source.offset + column, source.exists ? columns - column : 0);
  }
}

// Calls move(tile, elements, pair) for each column tile that has at least one column below number `columns`. A thread
// holds two columns of each column tile, and `elements` says how many of the two exist: 0, 1 or 2. `pair` is true if
// the thread may move its two columns with one memory access. If all 8 columns of a column tile exist, `elements` is
// the constant 2, so no thread tests it at run time.
template <typename Tile, typename Move> NSA_DEVICE void for_each_pair(bool aligned, int32 columns, const Move &move) {
#pragma unroll
  for (int32 tile = 0; tile < Tile::kTiles; ++tile) {
    if ((tile + 1) * kTileColumns <= columns)
      move(tile, 2, aligned);
    else if (tile * kTileColumns < columns)
      move(tile, columns_from(Tile::column(tile, 0), columns, 2), false);
  }
}

// The result of exchange(), which swaps pairs of columns between an even lane and the next odd lane. Before exchange(),
// the even lane and the odd lane each hold one pair of neighbouring columns in the column tile `first` and one pair in
// the column tile `second`. After exchange(), the even lane holds four neighbouring columns of `first`, and the odd
// lane holds four neighbouring columns of `second`. Calling exchange() twice restores the original pairs.
template <typename T> struct alignas(4 * sizeof(T)) Quad {
  Pair<T> pairs[2];
};

template <typename T>
  requires kIsHalf<T>
NSA_DEVICE Quad<T> exchange(Pair<T> first, Pair<T> second) {
  const bool odd = threadIdx.x % 2 != 0;
  const uint32 received = shuffle_xor(odd ? first.bits : second.bits, 1);
  return {{{odd ? received : first.bits}, {odd ? second.bits : received}}};
}

// Loads a fragment directly from global memory to registers. If the rows are aligned, all columns exist, the elements
// have 16 bits and the number of column tiles is even, each lane reads 8 bytes with one access, and the four lanes of a
// row read 32 bytes together. A lane that reads 8 bytes gets columns that a neighbouring lane must hold, so the lanes
// of the warp exchange pairs of columns after reads of 8 bytes. If reads of 8 bytes are impossible, each lane reads
// only the columns that it must hold.
template <typename Result, typename T, int32 kRank, typename RowOf>
NSA_DEVICE Result load_fragment(const View<T, kRank> &view, int32 columns, const RowOf &row_of) {
  auto result = splat<Result>(T{});
  const int32 lane = threadIdx.x % 4;
#pragma unroll
  for (int32 slab = 0; slab < Result::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Row row = row_of(Result::row(slab, half));
      if (kIsHalf<T> && Result::kTiles % 2 == 0 && Result::kCols == columns && view.rows_aligned()) {
        if constexpr (kIsHalf<T>) {
          Quad<T> quads[Result::kTiles / 2] = {};
          const T *source = view.data + row.offset + lane % 2 * kTileColumns + lane / 2 * 4;
          if (row.exists)
#pragma unroll
            for (int32 i = 0; i < Result::kTiles / 2; ++i)
              quads[i] = *reinterpret_cast<const Quad<T> *>(source + 2 * i * kTileColumns);
#pragma unroll
          for (int32 i = 0; i < Result::kTiles / 2; ++i) {
            const Quad<T> own = exchange(quads[i].pairs[0], quads[i].pairs[1]);
            result.pairs[slab][2 * i][half] = own.pairs[0];
            result.pairs[slab][2 * i + 1][half] = own.pairs[1];
          }
        }
        continue;
      }
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

// The variant of store_tile for aligned rows. All lanes of the warp take part in the exchange of pairs, even if their
// row does not exist. Because the lanes exchange pairs, each lane stores 8 bytes with one access, and the four lanes of
// a row store 32 bytes together. The GPU writes memory in units of 32 bytes.
template <typename Tile, typename T>
NSA_DEVICE void store_quads(const Tile &fragment, T *target, bool exists, int32 columns, int32 slab, int32 half) {
  const int32 lane = threadIdx.x % 4;
  const int32 first_column = lane % 2 * kTileColumns + lane / 2 * 4;
  Quad<T> quads[Tile::kTiles / 2];
#pragma unroll
  for (int32 i = 0; i < Tile::kTiles / 2; ++i)
    quads[i] = exchange(fragment.pairs[slab][2 * i][half], fragment.pairs[slab][2 * i + 1][half]);
  target += first_column;
  if (exists)
#pragma unroll
    for (int32 i = 0; i < Tile::kTiles / 2; ++i)
      if (const int32 column = 2 * i * kTileColumns;
          column + 2 * kTileColumns <= columns || column + first_column < columns)
        *reinterpret_cast<Quad<T> *>(target + column) = quads[i];
}

// Stores a fragment of 16-bit elements. If the rows are aligned and `columns` is a multiple of 4, each lane stores four
// columns with one access; otherwise the lane stores element by element. The code that stores element by element is
// rarely executed, but it is compiled at each cold start. The loop that stores element by element is not unrolled, to
// keep its code short. Registers cannot be indexed at run time, so each iteration of the loop rotates the column tiles
// in the registers by one. `places` has the meaning that it has in store_rows.
template <typename T, int32 kRows, int32 kCols, int32 kWarps, int32 kRank, typename RowOf, typename... Places>
  requires(kIsHalf<T> && Fragment<T, kRows, kCols, kWarps>::kTiles % 2 == 0)
NSA_DEVICE void store_tile(const Fragment<T, kRows, kCols, kWarps> &fragment, const View<T, kRank> &view, int32 columns,
                           const RowOf &row_of, const Places &...places) {
  using Tile = Fragment<T, kRows, kCols, kWarps>;
  Row rows[Tile::kSlabs][2];
#pragma unroll
  for (int32 slab = 0; slab < Tile::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
      rows[slab][half] = row_of(Tile::row(slab, half), places.values[slab][half]...);
  if (view.rows_aligned() && columns % 4 == 0) {
#pragma unroll
    for (int32 slab = 0; slab < Tile::kSlabs; ++slab)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
        store_quads(fragment, view.data + rows[slab][half].offset, rows[slab][half].exists, columns, slab, half);
    return;
  }
  Tile ring = fragment;
#pragma unroll 1
  for (int32 tile = 0; tile < Tile::kTiles; ++tile) {
    const int32 column = Tile::column(tile, 0);
    const int32 elements = columns_from(column, columns, 2);
#pragma unroll
    for (int32 slab = 0; slab < Tile::kSlabs; ++slab)
#pragma unroll
      for (int32 half = 0; half < 2; ++half) {
        const Row row = rows[slab][half];
        store_pair(view.data + row.offset + column, ring.pairs[slab][0][half], row.exists ? elements : 0, false);
#pragma unroll
        for (int32 next = 1; next < Tile::kTiles; ++next)
          ring.pairs[slab][next - 1][half] = ring.pairs[slab][next][half];
      }
  }
}

template <typename T, int32 kRows, int32 kCols, int32 kWarps, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_tile(const Fragment<T, kRows, kCols, kWarps> &fragment, const View<T, kRank> &view, int32 columns,
                           const RowOf &row_of, const Places &...places) {
  using Tile = Fragment<T, kRows, kCols, kWarps>;
#pragma unroll
  for (int32 slab = 0; slab < Tile::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Row row = row_of(Tile::row(slab, half), places.values[slab][half]...);
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

// The element of a row vector for a slab that is not known when the kernel is compiled.
template <typename T, int32 kRows, int32 kWarps>
NSA_DEVICE T element_of(const RowVector<T, kRows, kWarps> &vector, int32 slab, int32 half) {
  T element = vector.values[0][half];
#pragma unroll
  for (int32 other = 1; other < RowVector<T, kRows, kWarps>::kSlabs; ++other)
    element = slab == other ? vector.values[other][half] : element;
  return element;
}

// Stores a fragment to a view of gradients. The loop is not unrolled, to keep its code short. Each turn selects the
// thread's pairs of one column tile and slab: to rotate the tiles, as the store of 16-bit elements does, would take a
// second fragment in registers where the program needs this one later.
template <typename T, int32 kRows, int32 kCols, int32 kWarps, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_tile(const Fragment<float, kRows, kCols, kWarps> &fragment, const View<Gradient<T>, kRank> &view,
                           int32 columns, const RowOf &row_of, const Places &...places) {
  using Tile = Fragment<float, kRows, kCols, kWarps>;
  if (view.is_plain()) {
    const auto rounded = map<Fragment<T, kRows, kCols, kWarps>>([](float value) { return value; }, fragment);
    store_tile(rounded, view.plain(), columns, row_of, places...);
    return;
  }
#pragma unroll 1
  for (int32 turn = 0; turn < Tile::kSlabs * Tile::kTiles; ++turn) {
    const int32 column = Tile::column(turn % Tile::kTiles, 0);
    const int32 elements = columns_from(column, columns, 2);
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      Pair<float> pair = fragment.pairs[0][0][half];
#pragma unroll
      for (int32 other = 1; other < Tile::kSlabs * Tile::kTiles; ++other)
        pair = turn == other ? fragment.pairs[other / Tile::kTiles][other % Tile::kTiles][half] : pair;
      const int32 slab = turn / Tile::kTiles;
      const Row row = row_of(Tile::row(slab, half), element_of(places, slab, half)...);
      view.set_pair(row.offset + column, pair, row.exists ? elements : 0);
    }
  }
}

// Loads one element for each row of a tile. Four lanes hold each row, and each of the four lanes reads the row's
// element.
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

// Stores one element for each row of a tile. Four lanes hold each row, and the first of the four lanes writes the row's
// element. The offset of a row may depend on values that the caller holds in further row vectors. The caller passes
// these row vectors as `places`, and store_rows calls row_of(r, place...) for each row r, where each `place` is the
// element of one row vector of `places` for row r.
template <typename T, int32 kRows, int32 kWarps, typename Stored, int32 kRank, typename RowOf, typename... Places>
NSA_DEVICE void store_rows(const RowVector<T, kRows, kWarps> &vector, const View<Stored, kRank> &view,
                           const RowOf &row_of, const Places &...places) {
  using Vector = RowVector<T, kRows, kWarps>;
#pragma unroll
  for (int32 slab = 0; slab < Vector::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      const Row target = row_of(Vector::row(slab, half), places.values[slab][half]...);
      if (target.exists && threadIdx.x % 4 == 0)
        view.set(target.offset, vector.values[slab][half]);
    }
}

} // namespace nsa
