// The operations that selection is made of, each on the CPU against plain loops: lists of best columns, shifted
// columns, products with some rows of what was loaded.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace nsa::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

const std::map<std::string, std::string> kLoad = {
    {"LOAD", "rows(%n) {\n %yes = arith.constant true\n tile.at [%n] if %yes\n }"}};

// Tiles of kTile columns are offered `TILES` at a time, the last tile first where BACKWARD.
const char *const kTop = R"(
  func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<i32, 2>, %tiles: i32, %backward: i1) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %width = arith.constant ${TILE} : i32
    %slots = arith.constant ${SLOTS} : i32
    %best = tile.top_create : !tile.top<${M}, ${SLOTS}>
    scf.for %i = %zero to %tiles step %one : i32 {
      %next = arith.addi %i, %one : i32
      %mirrored = arith.subi %tiles, %next : i32
      %number = arith.select %backward, %mirrored, %i : i32
      %first = arith.muli %number, %width : i32
      %t = tile.load %x rows(%n) {
        %m = arith.constant ${M} : i32
        %yes = arith.constant true
        %base = arith.muli %number, %m : i32
        %at = arith.addi %base, %n : i32
        tile.at [%at] if %yes
      } : !tile.view<f32, 1> -> tensor<${M}x${TILE}xf32>
      tile.top_insert %t at %first into %best : tensor<${M}x${TILE}xf32>, !tile.top<${M}, ${SLOTS}>
    }
    %before = arith.constant dense<-1> : tensor<${M}xi32>
    %last = scf.for %slot = %zero to %slots step %one iter_args(%previous = %before) -> (tensor<${M}xi32>) : i32 {
      %column = tile.top_next %best after %previous : !tile.top<${M}, ${SLOTS}> -> tensor<${M}xi32>
      tile.store %column, %y rows(%n) {
        %yes = arith.constant true
        tile.at [%n, %slot] if %yes
      } : tensor<${M}xi32>, !tile.view<i32, 2>
      scf.yield %column : tensor<${M}xi32>
    }
    return
  })";

struct TopShape {
  int64_t rows, slots, tile, tiles;
};

// Greatest first, lower columns before equal ones, NaN behind all numbers.
std::vector<int32_t> bestColumns(const std::vector<float> &scores, int64_t slots) {
  std::vector<int32_t> columns;
  for (int32_t column = 0; column < int32_t(scores.size()); ++column)
    if (scores[size_t(column)] != -kInfinity)
      columns.push_back(column);
  std::ranges::sort(columns, [&](int32_t a, int32_t b) {
    const float x = scores[size_t(a)], y = scores[size_t(b)];
    if (std::isnan(x) != std::isnan(y))
      return std::isnan(y);
    return x > y || (!(x < y) && a < b);
  });
  columns.resize(size_t(std::min<int64_t>(slots, int64_t(columns.size()))));
  std::ranges::sort(columns);
  columns.resize(size_t(slots), kNone);
  return columns;
}

class CpuTop : public testing::TestWithParam<std::string> {
protected:
  // `draw(row, column)` makes the scores.
  template <typename Draw> void check(const TopShape &shape, Draw draw) {
    SCOPED_TRACE(testing::Message() << shape.rows << " rows, " << shape.slots << " slots, " << shape.tiles
                                    << " tiles of " << shape.tile);
    std::map<std::string, std::string> values = kLoad;
    values["M"] = std::to_string(shape.rows);
    values["SLOTS"] = std::to_string(shape.slots);
    values["TILE"] = std::to_string(shape.tile);
    const TileKernel kernel(fill(kTop, values), GetParam());
    GuardedBuffer scores(size_t(shape.rows * shape.tile * shape.tiles) * 4),
        found(size_t(shape.rows * shape.slots) * 4);
    std::vector<std::vector<float>> rows(size_t(shape.rows), std::vector<float>(size_t(shape.tile * shape.tiles)));
    for (int64_t row = 0; row < shape.rows; ++row)
      for (int64_t column = 0; column < shape.tile * shape.tiles; ++column)
        scores.as<float>()[(column / shape.tile * shape.rows + row) * shape.tile + column % shape.tile] =
            rows[size_t(row)][size_t(column)] = draw(row, column);
    for (bool backward : {false, true}) {
      Slots slots;
      slots.view(scores.as<void>(), {shape.tile}).view(found.as<void>(), {shape.slots, 1});
      slots.i32(int32_t(shape.tiles)).i32(backward);
      kernel.run(slots);
      for (int64_t row = 0; row < shape.rows; ++row) {
        const int32_t *list = found.as<int32_t>() + row * shape.slots;
        ASSERT_EQ(std::vector<int32_t>(list, list + shape.slots), bestColumns(rows[size_t(row)], shape.slots))
            << "row " << row << (backward ? " backward " : " ") << testing::PrintToString(rows[size_t(row)]);
      }
    }
  }

  std::mt19937 engine{uint32_t(freshSeed())};
};
INSTANTIATE_TEST_SUITE_P(Levels, CpuTop, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuTop);

constexpr TopShape kTopShapes[] = {{1, 1, 1, 9}, {16, 16, 32, 8}, {37, 5, 7, 11}, {8, 64, 16, 10}, {33, 64, 24, 2}};

TEST_P(CpuTop, KeepsTheGreatest) {
  std::normal_distribution<float> normal;
  for (const TopShape &shape : kTopShapes)
    check(shape, [&](int64_t, int64_t) { return normal(engine); });
}

TEST_P(CpuTop, RisingAndFallingScores) {
  check({17, 6, 8, 12}, [](int64_t row, int64_t column) { return float(row % 2 ? column : -column); });
}

// Few values, so that most columns tie; both zeros are one value.
TEST_P(CpuTop, LowerColumnsComeFirstAmongEquals) {
  const float values[] = {1, 0.0f, -0.0f, -1, std::numeric_limits<float>::denorm_min(), -1e30f};
  for (const TopShape &shape : kTopShapes)
    check(shape, [&](int64_t, int64_t) { return values[engine() % 6]; });
}

TEST_P(CpuTop, NanInfinityAndAbsence) {
  const float values[] = {kNan, -kNan, kInfinity, -kInfinity, 0, -1e38f, std::numeric_limits<float>::max()};
  for (const TopShape &shape : kTopShapes) {
    check(shape, [&](int64_t, int64_t) { return values[engine() % 7]; });
    check(shape, [&](int64_t row, int64_t) { return values[row % 7]; }); // all alike
  }
}

class CpuColumns : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, CpuColumns, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuColumns);

TEST_P(CpuColumns, ShiftAndLast) {
  std::mt19937 engine(freshSeed());
  for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {16, 32}, {37, 5}, {64, 33}}) {
    std::map<std::string, std::string> values = kLoad;
    values["M"] = std::to_string(rows);
    values["N"] = std::to_string(columns);
    const TileKernel kernel(fill(R"(
      func.func @f(%x: !tile.view<f32, 1>, %first: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<f32, 1>) {
        %t = tile.load %x ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
        %f = tile.load %first ${LOAD} : !tile.view<f32, 1> -> tensor<${M}xf32>
        %last = tile.reduce last %t : tensor<${M}x${N}xf32> -> tensor<${M}xf32>
        %moved = tile.shift %t, %f : tensor<${M}xf32> -> tensor<${M}x${N}xf32>
        %sum = arith.addf %t, %moved : tensor<${M}x${N}xf32>
        tile.store %sum, %y ${LOAD} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
        tile.store %last, %z ${LOAD} : tensor<${M}xf32>, !tile.view<f32, 1>
        return
      })",
                                 values),
                            GetParam());
    GuardedBuffer x(size_t(rows * columns) * 4), first(size_t(rows) * 4), y(x.size()), z(first.size());
    for (GuardedBuffer *buffer : {&x, &first})
      for (size_t i = 0; i < buffer->size() / 4; ++i)
        buffer->as<float>()[i] = float(engine() % 1000);
    Slots slots;
    slots.view(x.as<void>(), {columns}).view(first.as<void>(), {1});
    slots.view(y.as<void>(), {columns}).view(z.as<void>(), {1});
    kernel.run(slots);
    for (int64_t row = 0; row < rows; ++row) {
      const float *source = x.as<float>() + row * columns;
      ASSERT_EQ(z.as<float>()[row], source[columns - 1]);
      for (int64_t column = 0; column < columns; ++column)
        ASSERT_EQ(y.as<float>()[row * columns + column],
                  source[column] + (column ? source[column - 1] : first.as<float>()[row]))
            << "row " << row << " column " << column;
    }
  }
}

TEST_P(CpuColumns, DotFromARow) {
  std::mt19937 engine(freshSeed());
  constexpr int64_t kRows = 19, kDepth = 24, kColumns = 16, kAll = 56;
  for (bool transpose : {false, true}) {
    std::map<std::string, std::string> values = kLoad;
    values["B"] = std::to_string(kAll) + "x" + std::to_string(transpose ? kDepth : kColumns);
    values["FLAGS"] = transpose ? "{transpose_b}" : "";
    const TileKernel kernel(fill(R"(
      func.func @f(%a: !tile.view<f32, 1>, %b: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %from: i32) {
        %ta = tile.load %a ${LOAD} : !tile.view<f32, 1> -> tensor<19x24xf32>
        %tb = tile.load %b ${LOAD} : !tile.view<f32, 1> -> tensor<${B}xf32>
        %zero = arith.constant dense<0.0> : tensor<19x16xf32>
        %r = tile.dot %ta, %tb, %zero from %from ${FLAGS} : tensor<19x24xf32>, tensor<${B}xf32> -> tensor<19x16xf32>
        tile.store %r, %y ${LOAD} : tensor<19x16xf32>, !tile.view<f32, 1>
        return
      })",
                                 values),
                            GetParam());
    const int64_t width = transpose ? kDepth : kColumns;
    GuardedBuffer a(kRows * kDepth * 4), b(size_t(kAll * width) * 4), y(kRows * kColumns * 4);
    for (GuardedBuffer *buffer : {&a, &b})
      for (size_t i = 0; i < buffer->size() / 4; ++i)
        buffer->as<float>()[i] = float(engine() % 64); // products and sums are exact
    for (int32_t from = 0; from + (transpose ? kColumns : kDepth) <= kAll; from += 8) {
      Slots slots;
      slots.view(a.as<void>(), {kDepth}).view(b.as<void>(), {width}).view(y.as<void>(), {kColumns}).i32(from);
      kernel.run(slots);
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t column = 0; column < kColumns; ++column) {
          float sum = 0;
          for (int64_t k = 0; k < kDepth; ++k)
            sum += a.as<float>()[row * kDepth + k] *
                   b.as<float>()[transpose ? (from + column) * width + k : (from + k) * width + column];
          ASSERT_EQ(y.as<float>()[row * kColumns + column], sum) << "from " << from << " transposed " << transpose;
        }
    }
  }
}

} // namespace
} // namespace nsa::test
