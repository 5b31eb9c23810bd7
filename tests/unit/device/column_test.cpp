// Column vectors: loads, stores, maps and reductions along the rows, for one warp and for several.
#include "column.cuh"
#include "copy.cuh"
#include "guarded_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kCols = 24;
using Columns = ColumnVector<float, kCols>;

TEST(Column, IsLoadedMappedAndStored) {
  GuardedMatrix<float> source(kCols, 1, 1, 1), result(kCols, 1, 1, 2);
  View<float, 1> from = source.view(false), to = result.view(false);
  for (int column = 0; column < kCols; ++column)
    result.at(column, 0) = -1;
  emulator::run({.threads = 64}, [&] {
    const auto x = load_columns<Columns>(from, [&](int32 c) { return from.at(c).only_if(c != 5); });
    const auto y = map<Columns>([](float x, int32 column) { return 2 * x + column; }, x);
    const auto place = map<ColumnVector<int32, kCols>>([](int32 column) { return (column + 1) % kCols; });
    store_columns(y, to, [&](int32, int32 place) { return to.at(place).only_if(place != 3); }, place);
  });
  for (int column = 0; column < kCols; ++column) {
    const int place = (column + 1) % kCols;
    const float x = column == 5 ? 0 : source.value(column, 0);
    EXPECT_EQ(result.value(place, 0), place == 3 ? -1 : 2 * x + column) << column;
  }
}

TEST(Column, ActsAsAFragmentWithEqualRows) {
  constexpr int kRows = 64, kWarps = 2;
  using Tile = Fragment<float, kRows, kCols, kWarps>;
  GuardedMatrix<float> source(kRows, kCols, kCols, 1), vector(kCols, 1, 1, 2), result(kRows, kCols, kCols, 3);
  View<float, 1> from = source.view(false), columns = vector.view(false), to = result.view(false);
  emulator::run({.threads = 32 * kWarps}, [&] {
    const auto x = load_fragment<Tile>(from, kCols, [&](int32 r) { return from.at(r); });
    const auto v = load_columns<Columns>(columns, [&](int32 c) { return columns.at(c); });
    const auto rows = map<RowVector<float, kRows, kWarps>>([](int32 row) { return 1.0f * row; });
    const auto y = map<Tile>(
        [](float x, float v, float r, int32 row, int32 column) { return x * v + r + column - row; }, x, v, rows);
    store_tile(y, to, kCols, [&](int32 r) { return to.at(r); });
  });
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kCols; ++column)
      EXPECT_NEAR(result.value(row, column), source.value(row, column) * vector.value(column, 0) + column, 1e-4);
}

template <int kRows, int kWarps> void checkReductions(uint64_t seed) {
  using Tile = Fragment<float, kRows, kCols, kWarps>;
  GuardedMatrix<float> source(kRows, kCols, kCols, 1), largest(kCols, 1, 1, 2), total(kCols, 1, 1, 3);
  View<float, 1> from = source.view(false), maxTo = largest.view(false), sumTo = total.view(false);
  emulator::run({.threads = 32 * kWarps, .seed = seed}, [&] {
    const auto x = load_fragment<Tile>(from, kCols, [&](int32 r) { return from.at(r); });
    if constexpr (kWarps == 1) {
      store_columns(reduce_rows_max(x), maxTo, [&](int32 c) { return maxTo.at(c); });
      store_columns(reduce_rows_add(x), sumTo, [&](int32 c) { return sumTo.at(c); });
    } else {
      const SharedTile<float, 8, kCols> maxima(emulator::sharedMemory()),
          sums(emulator::sharedMemory() + maxima.kBytes);
      write_partials_max(x, maxima);
      write_partials_add(x, sums);
      __syncthreads();
      store_columns(read_partials_max<kWarps>(maxima), maxTo, [&](int32 c) { return maxTo.at(c); });
      store_columns(read_partials_add<kWarps>(sums), sumTo, [&](int32 c) { return sumTo.at(c); });
    }
  });
  for (int column = 0; column < kCols; ++column) {
    float most = -INFINITY;
    double sum = 0;
    for (int row = 0; row < kRows; ++row) {
      most = std::max(most, source.value(row, column));
      sum += source.value(row, column);
    }
    EXPECT_EQ(largest.value(column, 0), most) << column;
    EXPECT_NEAR(total.value(column, 0), sum, 1e-4) << column;
  }
}

TEST(Column, ReducesRowsOfOneWarp) {
  checkReductions<16, 1>(0);
  checkReductions<48, 1>(0);
}

TEST(Column, ReducesRowsOfSeveralWarps) {
  checkReductions<32, 2>(1);
  checkReductions<128, 4>(2);
  checkReductions<128, 8>(0);
}

} // namespace
