// Tiles between global memory and shared memory or registers: what exists arrives, what does not is zero, and nothing
// past the last column of the last row is touched (the matrices end at a page that may not be read).
#include "copy.cuh"
#include "dot.cuh"
#include "simulated_data.h"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kTile = 32, kWarps = 2, kThreads = 64;

// Row r of the tile is row r + 3 of the matrix; every fifth row does not exist.
constexpr int kSkipped = 5, kOffset = 3;

template <typename T, int kCols> void copyRoundTrip(int columns, bool aligned) {
  constexpr int kGranule = 16 / static_cast<int>(sizeof(T));
  int stride = aligned ? (columns + kGranule - 1) / kGranule * kGranule : columns + 1;
  // The last row of the tile is the last of the matrix.
  GuardedMatrix<T> source(kTile + kOffset, columns, stride, 1);
  GuardedMatrix<T> target(kTile + kOffset, columns, stride, 2), untouched(kTile + kOffset, columns, stride, 2);
  View<T, 1> from = source.view(aligned), to = target.view(aligned);

  simulator::runBlock(kThreads, {}, simulator::Order::kWarpsBackward, [&] {
    const SharedTile<T, kTile, kCols> tile(shared_memory);
    const auto rowOf = [&](const View<T, 1> &view) {
      return [&view](int32 r) { return view.at(r + kOffset).only_if(r % kSkipped != 0); };
    };
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
          simulator::check(staged.pairs[0][tileIndex][half].bits == direct.pairs[0][tileIndex][half].bits,
                           "staged and direct differ");
    }
    for (int tileIndex = 0; tileIndex < direct.kTiles; ++tileIndex)
      for (int half = 0; half < 2; ++half)
        for (int index = 0; index < 2; ++index) {
          int row = direct.row(0, half), column = direct.column(tileIndex, index);
          float expected = row % kSkipped == 0 || column >= columns ? 0 : source.value(row + kOffset, column);
          simulator::check(to_float(direct.get(0, tileIndex, half, index)) == expected, "a loaded element is wrong");
        }
    store_tile(direct, to, columns, rowOf(to));
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

TEST(Copy, OneElementPerRow) {
  GuardedMatrix<float> source(kTile, 1, 1, 1), target(kTile, 1, 1, 2), untouched(kTile, 1, 1, 2);
  View<float, 1> from = source.view(false), to = target.view(false);
  simulator::runBlock(kThreads, {}, simulator::Order::kForward, [&] {
    const auto rows =
        load_rows<RowVector<float, kTile, kWarps>>(from, [&](int32 r) { return from.at(r).only_if(r < 20); });
    store_rows(rows, to, [&](int32 r) { return to.at(r).only_if(r >= 10); });
  });
  for (int row = 0; row < kTile; ++row)
    EXPECT_EQ(target.value(row, 0), row < 10 ? untouched.value(row, 0) : row < 20 ? source.value(row, 0) : 0);
}

} // namespace
