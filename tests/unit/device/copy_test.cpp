// Tiles between global memory and shared memory or registers: what exists arrives, what does not is zero, and nothing
// past the last column of the last row is touched (the matrices end at a page that may not be read).
#include "copy.cuh"
#include "dot.cuh"
#include "guarded_matrix.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kTile = 32, kWarps = 2, kThreads = 64;

// Row r of the tile is row r + 3 of the matrix; every fifth row does not exist.
constexpr int kSkipped = 5, kOffset = 3;

// kEven: the rows are evenly spaced, and copied so.
template <typename T, int kCols, bool kEven = false> void copyRoundTrip(int columns, bool aligned) {
  constexpr int kGranule = 16 / static_cast<int>(sizeof(T));
  int stride = aligned ? (columns + kGranule - 1) / kGranule * kGranule : columns + 1;
  // The last row of the tile is the last of the matrix.
  GuardedMatrix<T> source(kTile + kOffset, columns, stride, 1);
  GuardedMatrix<T> target(kTile + kOffset, columns, stride, 2), untouched(kTile + kOffset, columns, stride, 2);
  View<T, 1> from = source.view(aligned), to = target.view(aligned);

  emulator::run({.threads = kThreads, .seed = 2}, [&] {
    const SharedTile<T, kTile, kCols> tile(emulator::sharedMemory());
    const auto rowOf = [&](const View<T, 1> &view) {
      return [&view](int32 r) { return view.at(r + kOffset).only_if(r % kSkipped != 0); };
    };
    if constexpr (kEven)
      load_tile<kThreads>(tile, from, columns, evenly_spaced(rowOf(from)));
    else
      load_tile<kThreads>(tile, from, columns, rowOf(from));
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    // Through both ways into registers, which must agree.
    const auto direct = load_fragment<Fragment<T, kTile, kCols, kWarps>>(from, columns, rowOf(from));
    if constexpr (kIsHalf<T>) {
      const auto staged = load_operand<Fragment<T, kTile, kCols, kWarps>>(tile);
      for (int tileIndex = 0; tileIndex < staged.kTiles; ++tileIndex)
        for (int half = 0; half < 2; ++half)
          emulator::check(staged.pairs[0][tileIndex][half].bits == direct.pairs[0][tileIndex][half].bits,
                          "staged and direct differ");
    }
    for (int tileIndex = 0; tileIndex < direct.kTiles; ++tileIndex)
      for (int half = 0; half < 2; ++half)
        for (int index = 0; index < 2; ++index) {
          int row = direct.row(0, half), column = direct.column(tileIndex, index);
          float expected = row % kSkipped == 0 || column >= columns ? 0 : source.value(row + kOffset, column);
          emulator::check(to_float(direct.get(0, tileIndex, half, index)) == expected, "a loaded element is wrong");
        }
    if constexpr (kEven) {
      store_tile(direct, to, columns, rowOf(to));
    } else { // where the elements of a row vector say
      RowVector<int32, kTile, kWarps> rows;
      for (int slab = 0; slab < rows.kSlabs; ++slab)
        for (int half = 0; half < 2; ++half)
          rows.values[slab][half] = rows.row(slab, half);
      store_tile(direct, to, columns, [&](int32, int32 row) { return rowOf(to)(row); }, rows);
    }
  });
  for (int row = 0; row < kTile + kOffset; ++row)
    for (int column = 0; column < columns; ++column) {
      bool stored = row >= kOffset && (row - kOffset) % kSkipped != 0;
      EXPECT_EQ(target.value(row, column), stored ? source.value(row, column) : untouched.value(row, column))
          << row << ", " << column;
    }
}

TEST(Copy, HalfRowsInPieces) {
  copyRoundTrip<bf16, 64>(64, true);
  copyRoundTrip<f16, 48>(48, true);
}

TEST(Copy, HalfRowsWithAPartialLastPiece) {
  copyRoundTrip<bf16, 80>(72, true);
  copyRoundTrip<bf16, 80>(70, true);
  copyRoundTrip<bf16, 48>(33, true);
}

TEST(Copy, HalfRowsElementByElement) {
  copyRoundTrip<bf16, 64>(64, false);
  copyRoundTrip<bf16, 48>(33, false);
  copyRoundTrip<f16, 16>(1, false);
}

TEST(Copy, FloatRows) {
  copyRoundTrip<float, 40>(40, true);
  copyRoundTrip<float, 40>(35, true);
  copyRoundTrip<float, 40>(33, false);
}

// Rows of 2, 4 and 8 chunks that the swizzle permutes, and with steps that are no multiple of 8 rows.
TEST(Copy, EvenlySpacedRows) {
  copyRoundTrip<bf16, 64, true>(64, true);
  copyRoundTrip<bf16, 80, true>(80, true);
  copyRoundTrip<bf16, 96, true>(90, true);
  copyRoundTrip<bf16, 192, true>(192, true);
  copyRoundTrip<bf16, 64, true>(64, false);
  copyRoundTrip<float, 128, true>(128, true);
}

// The tile's first kBefore rows lie before the matrix.
template <int kRows, int kWarpsOfBlock, int kBefore = 0, int kCols = 64> void copyEvenRows() {
  GuardedMatrix<bf16> source(kRows - kBefore, kCols, kCols, 1);
  View<bf16, 1> from = source.view(true);
  emulator::run({.threads = 32 * kWarpsOfBlock}, [&] {
    const SharedTile<bf16, kRows, kCols> tile(emulator::sharedMemory());
    load_tile<32 * kWarpsOfBlock>(tile, from, kCols,
                                  evenly_spaced([&](int32 r) { return from.at(r - kBefore).only_if(r >= kBefore); }));
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kCols; ++column) {
        const Chunk chunk = tile.chunk(row, column / 8);
        const Pair<bf16> pair{chunk.words[column % 8 / 2]};
        const float expected = row < kBefore ? 0 : source.value(row - kBefore, column);
        emulator::check(to_float(pair.get(column % 2)) == expected, "a copied element is wrong");
      }
  });
}

// Fewer rows than one step of the block copies, and rows that are no multiple of a step. A warp of its own copies four
// rows at a step, between which the swizzle does not repeat.
TEST(Copy, TilesThatAreNoMultipleOfAStep) {
  copyEvenRows<16, 8>();
  copyEvenRows<48, 4>();
  copyEvenRows<48, 1>();
  copyEvenRows<16, 1, 0, 192>();
  copyEvenRows<96, 8>();
}

TEST(Copy, TilesThatBeginBeforeTheTensor) {
  copyEvenRows<48, 1, 17>();
  copyEvenRows<48, 1, 47>();
  copyEvenRows<96, 8, 40>();
}

// The third chunk of 16 columns in rows of 40: half of it exists.
TEST(Copy, ChunksOfLongerRows) {
  constexpr int kColumns = 40, kChunk = 16, kFirst = 2 * kChunk, kLeft = kColumns - kFirst;
  GuardedMatrix<bf16> source(kTile, kColumns, kColumns, 1), target(kTile, kColumns, kColumns, 2);
  GuardedMatrix<bf16> untouched(kTile, kColumns, kColumns, 2);
  for (bool aligned : {true, false}) {
    View<bf16, 1> from = source.view(aligned), to = target.view(aligned);
    emulator::run({.threads = kThreads}, [&] {
      const SharedTile<bf16, kTile, kChunk> tile(emulator::sharedMemory());
      const auto rowOf = [&](int32 r) { return from.at(r).from_column(kFirst); };
      load_tile<kThreads>(tile, from, kLeft, evenly_spaced(rowOf));
      commit_copies();
      wait_copies<0>();
      __syncthreads();
      using Registers = Fragment<bf16, kTile, kChunk, kWarps>;
      const auto staged = load_operand<Registers>(tile);
      const auto direct = load_fragment<Registers>(from, kLeft, rowOf);
      for (int tileIndex = 0; tileIndex < Registers::kTiles; ++tileIndex)
        for (int half = 0; half < 2; ++half)
          for (int index = 0; index < 2; ++index) {
            const int column = Registers::column(tileIndex, index);
            const float expected = column < kLeft ? source.value(Registers::row(0, half), kFirst + column) : 0;
            emulator::check(to_float(staged.get(0, tileIndex, half, index)) == expected, "a copied element is wrong");
            emulator::check(to_float(direct.get(0, tileIndex, half, index)) == expected, "a loaded element is wrong");
          }
      store_tile(staged, to, kLeft, [&](int32 r) { return to.at(r).from_column(kFirst); });
    });
    for (int row = 0; row < kTile; ++row)
      for (int column = 0; column < kColumns; ++column)
        EXPECT_EQ(target.value(row, column), column < kFirst ? untouched.value(row, column) : source.value(row, column))
            << row << ", " << column;
  }
}

// Two slabs of rows in a warp, whole and with columns left over, in pieces and element by element.
TEST(Copy, SlabsOfAWarp) {
  constexpr int kRows = 64, kCols = 48;
  for (const int columns : {48, 40, 37})
    for (const bool aligned : {true, false}) {
      GuardedMatrix<f16> source(kRows, columns, 48, 1), target(kRows, columns, 48, 2), untouched(kRows, columns, 48, 2);
      View<f16, 1> from = source.view(aligned), to = target.view(aligned);
      emulator::run({.threads = kThreads, .seed = 1}, [&] {
        const auto rows =
            load_fragment<Fragment<f16, kRows, kCols, kWarps>>(from, columns, [&](int32 r) { return from.at(r); });
        store_tile(rows, to, columns, [&](int32 r) { return to.at(r).only_if(r % kSkipped != 0); });
      });
      for (int row = 0; row < kRows; ++row)
        for (int column = 0; column < columns; ++column)
          EXPECT_EQ(target.value(row, column),
                    row % kSkipped == 0 ? untouched.value(row, column) : source.value(row, column))
              << row << ", " << column << " of " << columns;
    }
}

TEST(Copy, OneElementPerRow) {
  GuardedMatrix<float> source(kTile, 1, 1, 1), target(kTile, 1, 1, 2), untouched(kTile, 1, 1, 2);
  View<float, 1> from = source.view(false), to = target.view(false);
  emulator::run({.threads = kThreads}, [&] {
    const auto rows =
        load_rows<RowVector<float, kTile, kWarps>>(from, [&](int32 r) { return from.at(r).only_if(r < 20); });
    store_rows(rows, to, [&](int32 r) { return to.at(r).only_if(r >= 10); });
  });
  for (int row = 0; row < kTile; ++row)
    EXPECT_EQ(target.value(row, 0), row < 10 ? untouched.value(row, 0) : row < 20 ? source.value(row, 0) : 0);
}

} // namespace
