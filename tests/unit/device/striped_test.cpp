// Tiles whose rows lie across all threads: loads, stores, maps and reductions, for rows of less than one octet a thread
// to several, aligned and not, and for columns that end within an octet.
#include "guarded_matrix.h"
#include "striped.cuh"

#include <gtest/gtest.h>

#include <algorithm>

using namespace nsa;
using namespace nsa::test;

namespace {

template <typename T, int kRows, int kCols, int kWarps> void checkMoves(int columns, bool isAligned, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << kRows << "x" << kCols << ", " << kWarps << " warps, " << columns << " columns, "
                                  << (isAligned ? "aligned" : "not aligned"));
  using Tile = StripedTile<T, kRows, kCols, kWarps>;
  const int stride = isAligned ? (columns + 7) / 8 * 8 : columns;
  GuardedMatrix<T> source(kRows + 1, columns, stride, 1), result(kRows + 1, columns, stride, 2);
  View<T, 1> from = source.view(isAligned), to = result.view(isAligned);
  std::vector<float> before;
  for (int column = 0; column < columns; ++column)
    before.push_back(result.value(1, column));
  emulator::run({.threads = 32 * kWarps, .seed = seed}, [&] {
    // Row 1 is neither loaded nor stored where it is 0.
    const auto x = load_fragment<Tile>(from, columns, [&](int32 r) { return from.at(r + 1).only_if(r != 1); });
    const auto y = map<Tile>([](T x, int32 row, int32 column) { return to_float(x) + row - column % 16; }, x);
    UniformRows<int32, kRows, kWarps> places;
    for (int row = 0; row < kRows; ++row)
      places.values[row] = row;
    store_tile(y, to, columns, [&](int32, int32 place) { return to.at(place).only_if(place != 1); }, places);
  });
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < columns; ++column) {
      const float expected = source.value(row + 1, column) + row - column % 16;
      if (row == 1)
        ASSERT_EQ(result.value(row, column), before[column]) << column;
      else
        ASSERT_NEAR(result.value(row, column), expected, sizeof(T) == 2 ? .07 : 1e-6) << row << ", " << column;
    }
}

TEST(Striped, IsLoadedMappedAndStored) {
  checkMoves<bf16, 1, 1024, 4>(1024, true, 0);
  checkMoves<bf16, 2, 256, 2>(200, true, 1);
  checkMoves<f16, 3, 64, 1>(61, true, 0);
  checkMoves<f16, 1, 600, 2>(600, true, 0);
  checkMoves<bf16, 4, 1280, 4>(1111, false, 2);
  checkMoves<float, 2, 768, 2>(768, true, 0);
  checkMoves<float, 3, 40, 1>(33, false, 0);
}

TEST(Striped, LeavesColumnsBehindTheTileAlone) {
  using Tile = StripedTile<float, 2, 520, 2>;
  constexpr int kColumns = 1100;
  GuardedMatrix<float> source(2, kColumns, kColumns, 1), result(2, kColumns, kColumns, 2),
      before(2, kColumns, kColumns, 2);
  View<float, 1> from = source.view(true), to = result.view(true);
  emulator::run({.threads = 64}, [&] {
    const auto x = load_fragment<Tile>(from, kColumns, [&](int32 r) { return from.at(r); });
    store_tile(x, to, kColumns, [&](int32 r) { return to.at(r); });
  });
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < kColumns; ++column)
      ASSERT_EQ(result.value(row, column), (column < 520 ? source : before).value(row, column)) << column;
}

template <int kRows, int kCols, int kWarps> void checkReductions(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << kRows << "x" << kCols << ", " << kWarps << " warps");
  using Tile = StripedTile<float, kRows, kCols, kWarps>;
  using Rows = UniformRows<float, kRows, kWarps>;
  GuardedMatrix<float> source(kRows, kCols, kCols, 1), rows(3 * kRows, 1, 1, 2), columns(2 * kCols, 1, 1, 3);
  source.at(0, kCols - 1) = NAN;
  View<float, 1> from = source.view(true), toRows = rows.view(false), toColumns = columns.view(false);
  emulator::run({.threads = 32 * kWarps, .seed = seed}, [&] {
    const auto x = load_fragment<Tile>(from, kCols, [&](int32 r) { return from.at(r); });
    const auto numbers = map<Tile>([](float x) { return x == x ? x : 0.0f; }, x);
    const auto none = splat<Tile>(-0.0f);
    const auto store = [&](const Rows &values, int part) {
      const auto place = map<Rows>([=](int32 row) { return part * kRows + row; });
      store_rows(values, toRows, [&](int32, int32 place) { return toRows.at(place); }, place);
    };
    if constexpr (kWarps == 1) {
      store(reduce_max(x), 0);
      store(reduce_add(numbers), 1);
      store(reduce_add(none), 2);
    } else {
      using Partials = SharedTile<float, (kRows + 7) / 8 * 8, (kWarps + 3) / 4 * 4>;
      const Partials first(emulator::sharedMemory()), second(emulator::sharedMemory() + Partials::kBytes),
          third(emulator::sharedMemory() + 2 * Partials::kBytes);
      write_partials_max(x, first);
      write_partials_add(numbers, second);
      write_partials_add(none, third);
      __syncthreads();
      store(read_partials_max<Rows>(first), 0);
      store(read_partials_add<Rows>(second), 1);
      store(read_partials_add<Rows>(third), 2);
    }
    store_columns(reduce_rows_max(x), toColumns, [&](int32 c) { return toColumns.at(c); });
    store_columns(reduce_rows_add(numbers), toColumns, [&](int32 c) { return toColumns.at(kCols + c); });
  });
  const auto number = [&](int row, int column) {
    return std::isnan(source.value(row, column)) ? 0 : source.value(row, column);
  };
  for (int row = 0; row < kRows; ++row) {
    float most = -INFINITY;
    double sum = 0;
    for (int column = 0; column < kCols; ++column) {
      most = std::fmax(most, source.value(row, column));
      sum += number(row, column);
    }
    EXPECT_EQ(rows.value(row, 0), most) << row;
    EXPECT_NEAR(rows.value(kRows + row, 0), sum, 1e-3) << row;
    EXPECT_TRUE(std::signbit(rows.value(2 * kRows + row, 0))) << row << ": a sum of negative zeros is one";
  }
  for (int column = 0; column < kCols; ++column) {
    float most = source.value(0, column);
    double sum = 0;
    for (int row = 0; row < kRows; ++row) {
      most = std::fmax(most, source.value(row, column));
      sum += number(row, column);
    }
    EXPECT_TRUE(columns.value(column, 0) == most || std::isnan(most)) << column;
    EXPECT_NEAR(columns.value(kCols + column, 0), sum, 1e-4) << column;
  }
}

TEST(Striped, IsReducedAlongColumnsAndRows) {
  checkReductions<1, 256, 1>(0);
  checkReductions<3, 24, 1>(1);
  checkReductions<2, 1024, 2>(2);
  checkReductions<1, 1288, 4>(0);
  checkReductions<5, 40, 8>(1);
}

TEST(Striped, MeetsItsVectorsInAMap) {
  constexpr int kRows = 3, kCols = 536, kWarps = 2;
  using Tile = StripedTile<float, kRows, kCols, kWarps>;
  using Rows = UniformRows<float, kRows, kWarps>;
  using Columns = StripedColumns<float, kCols, kWarps>;
  GuardedMatrix<float> source(kRows, kCols, kCols, 1), rows(kRows, 1, 1, 2), columns(kCols, 1, 1, 3),
      result(kRows, kCols, kCols, 4);
  View<float, 1> from = source.view(true), ofRows = rows.view(false), ofColumns = columns.view(false),
                 to = result.view(true);
  emulator::run({.threads = 32 * kWarps}, [&] {
    const auto x = load_fragment<Tile>(from, kCols, [&](int32 r) { return from.at(r); });
    const auto r = load_rows<Rows>(ofRows, [&](int32 r) { return ofRows.at(r).only_if(r != 2); });
    const auto c = load_columns<Columns>(ofColumns, [&](int32 c) { return ofColumns.at(c).only_if(c != 7); });
    const auto twice = map<Columns>([](float c, int32 column) { return 2 * c + column; }, c);
    const auto y = map<Tile>([](float x, float r, float c) { return x * r + c; }, x, r, twice);
    store_tile(y, to, kCols, [&](int32 r) { return to.at(r); });
  });
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kCols; ++column) {
      const float r = row == 2 ? 0 : rows.value(row, 0), c = column == 7 ? 0 : columns.value(column, 0);
      ASSERT_NEAR(result.value(row, column), source.value(row, column) * r + 2 * c + column, 1e-4);
    }
}

} // namespace
