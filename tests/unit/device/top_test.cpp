// Lists of best columns, and what selection needs beside them, against plain loops.
#include "copy.cuh"
#include "dot.cuh"
#include "guarded_matrix.h"
#include "reduce.cuh"
#include "shift.cuh"
#include "top_lists.cuh"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kNone = std::numeric_limits<int>::max();

// Greatest first, lower columns before equal ones, NaN behind all numbers; ascending in the end.
std::vector<int> bestColumns(GuardedMatrix<float> &scores, int row, int slots) {
  std::vector<int> columns;
  for (int column = 0; column < scores.columns; ++column)
    if (scores.value(row, column) != -INFINITY)
      columns.push_back(column);
  std::sort(columns.begin(), columns.end(), [&](int a, int b) {
    const float x = scores.value(row, a), y = scores.value(row, b);
    if (std::isnan(x) != std::isnan(y))
      return std::isnan(y);
    return x > y || (!(x < y) && a < b);
  });
  columns.resize(std::min<size_t>(columns.size(), static_cast<size_t>(slots)));
  std::sort(columns.begin(), columns.end());
  columns.resize(static_cast<size_t>(slots), kNone);
  return columns;
}

// kTiles tiles of kCols columns are offered, the last one first if `backward`.
template <int kRows, int kCols, int kTiles, int kSlots, int kWarps>
void checkTop(GuardedMatrix<float> &scores, bool backward, uint64_t seed) {
  GuardedMatrix<float> found(kRows, kSlots, kSlots, 1);
  auto *columns = reinterpret_cast<int *>(&found.at(0, 0));
  View<float, 1> from = scores.view(false);
  View<int, 2> target = {columns, {kSlots, 1}, 0};
  emulator::run({.threads = 32 * kWarps, .seed = seed}, [&] {
    const TopLists<kRows, kSlots, kWarps> lists(emulator::sharedMemory());
    top_clear(lists);
    for (int32 i = 0; i < kTiles; ++i) {
      const int32 first = (backward ? kTiles - 1 - i : i) * kCols;
      const auto tile = load_fragment<Fragment<float, kRows, kCols, kWarps>>(
          from, kCols, [&](int32 r) { return from.at(r).from_column(first); });
      top_insert(lists, tile, first);
    }
    auto previous = splat<RowVector<int32, kRows, kWarps>>(-1);
    for (int32 slot = 0; slot < kSlots; ++slot) {
      previous = top_next(lists, previous);
      store_rows(previous, target, [&](int32 r) { return target.at(r, slot); });
    }
  });
  for (int row = 0; row < kRows; ++row)
    ASSERT_EQ(std::vector<int>(columns + row * kSlots, columns + (row + 1) * kSlots), bestColumns(scores, row, kSlots))
        << "row " << row << (backward ? " backward" : "");
}

template <int kRows, int kCols, int kTiles, int kSlots, int kWarps, typename Draw> void checkTops(const Draw &draw) {
  SCOPED_TRACE(testing::Message() << kRows << "x" << kCols << " slots " << kSlots << " warps " << kWarps);
  GuardedMatrix<float> scores(kRows, kCols * kTiles, kCols * kTiles, 3);
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < scores.columns; ++column)
      scores.at(row, column) = draw(row, column, scores.value(row, column));
  checkTop<kRows, kCols, kTiles, kSlots, kWarps>(scores, false, 0);
  checkTop<kRows, kCols, kTiles, kSlots, kWarps>(scores, true, 2);
}

template <typename Draw> void checkAllShapes(const Draw &draw) {
  checkTops<16, 16, 6, 1, 1>(draw);
  checkTops<16, 8, 9, 3, 1>(draw);
  checkTops<64, 32, 4, 16, 2>(draw); // two slabs a warp
  checkTops<32, 64, 2, 5, 2>(draw);
  checkTops<16, 32, 5, 64, 1>(draw);
  checkTops<16, 16, 2, 64, 1>(draw); // fewer columns than slots
  checkTops<16, 32, 5, 65, 1>(draw);
  checkTops<32, 32, 4, 97, 1>(draw);
  checkTops<32, 64, 3, 128, 2>(draw);
}

TEST(Top, KeepsTheGreatest) {
  checkAllShapes([](int, int, float drawn) { return drawn; });
}

TEST(Top, RisingAndFallingScores) {
  checkAllShapes([](int row, int column, float) { return static_cast<float>(row % 2 ? column : -column); });
}

TEST(Top, LowerColumnsComeFirstAmongEquals) {
  const float values[] = {1, 0.0f, -0.0f, -1, std::numeric_limits<float>::denorm_min(), -1e30f};
  std::mt19937 generator(5);
  checkAllShapes([&](int, int, float) { return values[generator() % 6]; });
}

TEST(Top, NanInfinityAndAbsence) {
  const float values[] = {NAN, -NAN, INFINITY, -INFINITY, 0, -std::numeric_limits<float>::max()};
  std::mt19937 generator(6);
  checkAllShapes([&](int, int, float) { return values[generator() % 6]; });
  checkAllShapes([&](int row, int, float) { return values[row % 6]; }); // all of a row alike
}

TEST(Columns, ShiftAndLast) {
  constexpr int kRows = 32, kCols = 24, kWarps = 1;
  GuardedMatrix<float> source(kRows, kCols, kCols, 1), first(kRows, 1, 1, 2), moved(kRows, kCols, kCols, 3),
      last(kRows, 1, 1, 4);
  View<float, 1> from = source.view(false), firstFrom = first.view(false), to = moved.view(false),
                 lastTo = last.view(false);
  emulator::run({.threads = 32, .seed = 1}, [&] {
    const auto x =
        load_fragment<Fragment<float, kRows, kCols, kWarps>>(from, kCols, [&](int32 r) { return from.at(r); });
    const auto f = load_rows<RowVector<float, kRows, kWarps>>(firstFrom, [&](int32 r) { return firstFrom.at(r); });
    store_tile(shift_columns(x, f), to, kCols, [&](int32 r) { return to.at(r); });
    store_rows(reduce_last(x), lastTo, [&](int32 r) { return lastTo.at(r); });
  });
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(last.value(row, 0), source.value(row, kCols - 1));
    for (int column = 0; column < kCols; ++column)
      EXPECT_EQ(moved.value(row, column), column ? source.value(row, column - 1) : first.value(row, 0));
  }
}

// Rows of a shared tile from a multiple of 8 on are a tile of their own, whatever the swizzle.
template <int kCols> void checkRowsOf() {
  constexpr int kRows = 48, kCount = 16;
  GuardedMatrix<bf16> source(kRows, kCols, kCols, 1);
  View<bf16, 1> from = source.view(true);
  for (int first = 0; first + kCount <= kRows; first += 8) {
    std::vector<bf16> found(kCount * kCols);
    emulator::run({.threads = 32}, [&] {
      const SharedTile<bf16, kRows, kCols> all(emulator::sharedMemory());
      load_tile<32>(all, from, kCols, [&](int32 r) { return from.at(r); });
      commit_copies();
      wait_copies<0>();
      __syncthreads();
      const auto part = rows_of<kCount>(all, first);
      for (int32 i = threadIdx.x; i < kCount * kCols; i += 32)
        found[static_cast<size_t>(i)] =
            reinterpret_cast<const bf16 *>(part.chunk(i / kCols, i % kCols / 8).words)[i % 8];
    });
    for (int row = 0; row < kCount; ++row)
      for (int column = 0; column < kCols; ++column)
        ASSERT_EQ(found[static_cast<size_t>(row * kCols + column)].bits, source.at(first + row, column).bits)
            << "from " << first << " row " << row << " column " << column;
  }
}

TEST(Columns, RowsOfASharedTile) {
  checkRowsOf<16>();
  checkRowsOf<48>();
  checkRowsOf<128>();
}

} // namespace
