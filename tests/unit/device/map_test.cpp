// Elementwise functions and reductions over fragments and row vectors.
#include "copy.cuh"
#include "guarded_matrix.h"
#include "map.cuh"
#include "reduce.cuh"
#include "report.cuh"

#include <gtest/gtest.h>

using namespace nsa;
using namespace nsa::test;

namespace {

constexpr int kRows = 32, kCols = 24, kWarps = 1, kThreads = 32; // two slabs in the warp
using Tile = Fragment<float, kRows, kCols, kWarps>;
using Rows = RowVector<float, kRows, kWarps>;

TEST(Map, SeesElementsRowsAndIndices) {
  GuardedMatrix<float> source(kRows, kCols, kCols, 1), result(kRows, kCols, kCols, 2);
  View<float, 1> from = source.view(false), to = result.view(false);
  emulator::run({.threads = kThreads}, [&] {
    const auto x = load_fragment<Tile>(from, kCols, [&](int32 r) { return from.at(r); });
    const auto rows = map<Rows>([](int32 row) { return 100.0f * row; });
    const auto y =
        map<Tile>([](float x, float r, int32 row, int32 column) { return x + r + row + 0.5f * column; }, x, rows);
    store_tile(y, to, kCols, [&](int32 r) { return to.at(r); });
  });
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kCols; ++column)
      EXPECT_EQ(result.value(row, column), source.value(row, column) + 100.0f * row + row + 0.5f * column);
}

TEST(Map, RoundsTo16Bits) {
  GuardedMatrix<float> source(kRows, kCols, kCols, 1);
  GuardedMatrix<bf16> result(kRows, kCols, kCols, 2);
  View<float, 1> from = source.view(false);
  View<bf16, 1> target = result.view(false);
  emulator::run({.threads = kThreads}, [&] {
    const auto x = load_fragment<Tile>(from, kCols, [&](int32 r) { return from.at(r); });
    const auto y = map<Fragment<bf16, kRows, kCols, kWarps>>([](float x) { return x; }, x);
    store_tile(y, target, kCols, [&](int32 r) { return target.at(r); });
  });
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kCols; ++column)
      EXPECT_EQ(result.at(row, column).bits, to<bf16>(source.value(row, column)).bits);
}

TEST(Reduce, MaximumAndSumAlongTheColumns) {
  GuardedMatrix<float> source(kRows, kCols, kCols, 1), largest(kRows, 1, 1, 2), total(kRows, 1, 1, 3);
  View<float, 1> from = source.view(false), maxTo = largest.view(false), sumTo = total.view(false);
  emulator::run({.threads = kThreads}, [&] {
    const auto x = load_fragment<Tile>(from, kCols, [&](int32 r) { return from.at(r); });
    store_rows(reduce_max(x), maxTo, [&](int32 r) { return maxTo.at(r); });
    store_rows(reduce_add(x), sumTo, [&](int32 r) { return sumTo.at(r); });
  });
  for (int row = 0; row < kRows; ++row) {
    float most = -INFINITY, sum = 0;
    for (int column = 0; column < kCols; ++column) {
      most = std::max(most, source.value(row, column));
      sum += source.value(row, column);
    }
    EXPECT_EQ(largest.value(row, 0), most);
    EXPECT_NEAR(total.value(row, 0), sum, 1e-5); // another order of 24 terms
  }
}

TEST(Report, TheFirstReporterWins) {
  int words[2] = {0, 0};
  View<int32, 1> status = {words, {1}, 0};
  View<int32, 1> absent = {nullptr, {1}, 0};
  emulator::run({.threads = kThreads}, [&] {
    report(false, 1, 10, status);
    report(true, 2, 20, status);
    report(true, 3, 30, status);
    report(true, 4, 40, absent);
  });
  EXPECT_EQ(words[0], 2);
  EXPECT_EQ(words[1], 20);
}

} // namespace
