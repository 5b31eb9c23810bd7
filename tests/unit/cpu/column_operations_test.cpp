// The operations that gradients with keys first and long rows are made of, each on the CPU against plain loops: one
// value per column, reductions along rows and columns, and products with a computed left side that is given transposed.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace nsa::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

const char *const kRow = "rows(%n) {\n %yes = arith.constant true\n tile.at [%n] if %yes\n }";

class CpuColumnOperations : public testing::TestWithParam<std::string> {
protected:
  void draw(GuardedBuffer &buffer) {
    for (size_t i = 0; i < buffer.size() / 4; ++i)
      buffer.as<float>()[i] = float(int(engine() % 64) - 32); // products and sums are exact
  }

  std::mt19937 engine{uint32_t(freshSeed())};
};
INSTANTIATE_TEST_SUITE_P(Levels, CpuColumnOperations, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuColumnOperations);

struct Shape {
  int64_t rows, columns;
  bool isByPanels;
};
constexpr Shape kShapes[] = {{1, 1, false},  {16, 32, true}, {37, 5, false},  {37, 5, true}, {64, 33, true},
                             {8, 17, false}, {8, 17, true},  {3, 200, false}, {9, 64, false}};

// The text of a test: ${M} rows, ${N} columns. ${LAST} takes the last column of %t, which is taken only of panels.
// Without it, a tile has whole rows of vectors, unless its rows are multiples of 16.
std::string fillShape(const std::string &text, const Shape &shape, std::map<std::string, std::string> others = {}) {
  std::string rows = std::to_string(shape.rows), columns = std::to_string(shape.columns);
  others.insert({{"ROW", kRow}, {"M", rows}, {"N", columns}});
  const std::string last =
      "%last = tile.reduce last %t : tensor<" + rows + "x" + columns + "xf32> -> tensor<" + rows + "xf32>";
  others.emplace("LAST", shape.isByPanels ? last : "");
  return fill(text, others);
}

void PrintTo(const Shape &shape, std::ostream *stream) {
  *stream << shape.rows << " x " << shape.columns << (shape.isByPanels ? " by panels" : "");
}

// Elements that do not exist are zero, a map sees the number of the column, and a store goes where a vector says.
TEST_P(CpuColumnOperations, MapsOfVectorsAndMatrices) {
  for (const Shape &shape : kShapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    const TileKernel kernel(fillShape(R"(
      func.func @f(%x: !tile.view<f32, 1>, %v: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<f32, 1>, %past: i32) {
        %t = tile.load %x ${ROW} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
        ${LAST}
        %c = tile.load %v rows(%n) {
          %exists = arith.cmpi slt, %n, %past : i32
          tile.at [%n] if %exists
        } : !tile.view<f32, 1> -> tensor<${N}xf32, #tile.column>
        %number = tile.iota 0 : tensor<${N}xi32, #tile.column>
        %number_f = arith.sitofp %number : tensor<${N}xi32, #tile.column> to tensor<${N}xf32, #tile.column>
        %d = arith.addf %c, %number_f : tensor<${N}xf32, #tile.column>
        %positive = arith.constant dense<0.0> : tensor<${N}xf32, #tile.column>
        %flag = arith.cmpf ogt, %d, %positive : tensor<${N}xf32, #tile.column>
        %flag_wide = tile.broadcast %flag : tensor<${N}xi1, #tile.column> -> tensor<${M}x${N}xi1>
        %wide = tile.broadcast %d : tensor<${N}xf32, #tile.column> -> tensor<${M}x${N}xf32>
        %product = arith.mulf %t, %wide : tensor<${M}x${N}xf32>
        %chosen = arith.select %flag_wide, %product, %t : tensor<${M}x${N}xi1>, tensor<${M}x${N}xf32>
        tile.store %chosen, %y ${ROW} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
        %one = arith.constant dense<1> : tensor<${N}xi32, #tile.column>
        %next = arith.addi %number, %one : tensor<${N}xi32, #tile.column>
        tile.store %d, %z rows(%n, %place of %next : tensor<${N}xi32, #tile.column>) {
          %yes = arith.constant true
          tile.at [%place] if %yes
        } : tensor<${N}xf32, #tile.column>, !tile.view<f32, 1>
        return
      })",
                                      shape),
                            GetParam());
    GuardedBuffer x(size_t(shape.rows * shape.columns) * 4), v(size_t(shape.columns) * 4), y(x.size()),
        z(size_t(shape.columns + 1) * 4);
    draw(x);
    draw(v);
    const int64_t past = shape.columns - shape.columns / 3;
    Slots slots;
    slots.view(x.as<void>(), {shape.columns}).view(v.as<void>(), {1}).view(y.as<void>(), {shape.columns});
    slots.view(z.as<void>(), {1}).i32(int32_t(past));
    kernel.run(slots);
    for (int64_t column = 0; column < shape.columns; ++column) {
      const float d = (column < past ? v.as<float>()[column] : 0) + float(column);
      ASSERT_EQ(z.as<float>()[column + 1], d) << "column " << column;
      for (int64_t row = 0; row < shape.rows; ++row) {
        const float t = x.as<float>()[row * shape.columns + column];
        ASSERT_EQ(y.as<float>()[row * shape.columns + column], d > 0 ? t * d : t) << row << ", " << column;
      }
    }
  }
}

// A list ends before the tile does. An element that does not exist is 0, and its place is not read.
TEST_P(CpuColumnOperations, ListsEndWhereTheirRowsDo) {
  for (const char *type : {"i32", "f32", "bf16"}) {
    SCOPED_TRACE(type);
    const bool isInteger = type == std::string("i32");
    const TileKernel kernel(fill(R"(
      func.func @f(%list: !tile.view<i32, 1>, %weights: !tile.view<${T}, 1>, %x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %past: i32) {
        %t = tile.load %x rows(%n) {
          %exists = arith.cmpi slt, %n, %past : i32
          %place = tile.load_scalar %list[%n] if %exists : !tile.view<i32, 1>
          tile.at [%place] if %exists
        } : !tile.view<f32, 1> -> tensor<24xf32, #tile.column>
        tile.store %t, %y rows(%n) {
          %exists = arith.cmpi slt, %n, %past : i32
          %weight = tile.load_scalar %weights[%n] if %exists : !tile.view<${T}, 1>
          %zero = arith.constant ${ZERO} : ${T}
          %is_zero = ${COMPARE} %weight, %zero : ${T}
          tile.at [%n] if %is_zero
        } : tensor<24xf32, #tile.column>, !tile.view<f32, 1>
        return
      })",
                                 {{"T", type},
                                  {"ZERO", isInteger ? "0" : "0.0"},
                                  {"COMPARE", isInteger ? "arith.cmpi eq," : "arith.cmpf oeq,"}}),
                            GetParam());
    constexpr int32_t kListed = 5, kColumns = 24;
    GuardedBuffer list(kListed * 4), weights(kListed * (type == std::string("bf16") ? 2 : 4)), x(kListed * 4),
        y(kColumns * 4);
    std::memset(weights.as<void>(), 0, weights.size());
    draw(x);
    for (int32_t i = 0; i < kListed; ++i)
      list.as<int32_t>()[i] = kListed - 1 - i;
    Slots slots;
    slots.view(list.as<void>(), {1}).view(weights.as<void>(), {1}).view(x.as<void>(), {1}).view(y.as<void>(), {1});
    slots.i32(kListed);
    kernel.run(slots);
    for (int32_t i = 0; i < kColumns; ++i)
      ASSERT_EQ(y.as<float>()[i], i < kListed ? x.as<float>()[kListed - 1 - i] : 0) << "column " << i;
  }
}

// Of %t plus a number: the sum and the maximum of each column, and of each row.
class CpuReductions : public CpuColumnOperations {
protected:
  struct Results {
    std::vector<float> columnSums, columnMaxima, rowSums, rowMaxima;
  };

  Results reduce(const Shape &shape, const std::string &added, GuardedBuffer &x) const {
    const TileKernel kernel(fillShape(R"(
      func.func @f(%x: !tile.view<f32, 1>, %a: !tile.view<f32, 1>, %b: !tile.view<f32, 1>, %c: !tile.view<f32, 1>, %d: !tile.view<f32, 1>) {
        %t = tile.load %x ${ROW} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
        ${LAST}
        %added = arith.constant dense<${ADDED}> : tensor<${M}x${N}xf32>
        %u = arith.addf %t, %added : tensor<${M}x${N}xf32>
        %column_sum = tile.reduce add %u : tensor<${M}x${N}xf32> -> tensor<${N}xf32, #tile.column>
        %column_max = tile.reduce max %u : tensor<${M}x${N}xf32> -> tensor<${N}xf32, #tile.column>
        %row_sum = tile.reduce add %u : tensor<${M}x${N}xf32> -> tensor<${M}xf32>
        %row_max = tile.reduce max %u : tensor<${M}x${N}xf32> -> tensor<${M}xf32>
        tile.store %column_sum, %a ${ROW} : tensor<${N}xf32, #tile.column>, !tile.view<f32, 1>
        tile.store %column_max, %b ${ROW} : tensor<${N}xf32, #tile.column>, !tile.view<f32, 1>
        tile.store %row_sum, %c ${ROW} : tensor<${M}xf32>, !tile.view<f32, 1>
        tile.store %row_max, %d ${ROW} : tensor<${M}xf32>, !tile.view<f32, 1>
        return
      })",
                                      shape, {{"ADDED", added}}),
                            GetParam());
    const size_t columns = size_t(shape.columns), rows = size_t(shape.rows);
    GuardedBuffer a(columns * 4), b(columns * 4), c(rows * 4), d(rows * 4);
    Slots slots;
    slots.view(x.as<void>(), {shape.columns}).view(a.as<void>(), {1}).view(b.as<void>(), {1});
    slots.view(c.as<void>(), {1}).view(d.as<void>(), {1});
    kernel.run(slots);
    auto values = [](GuardedBuffer &buffer, size_t count) {
      return std::vector<float>(buffer.as<float>(), buffer.as<float>() + count);
    };
    return {values(a, columns), values(b, columns), values(c, rows), values(d, rows)};
  }
};
INSTANTIATE_TEST_SUITE_P(Levels, CpuReductions, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuReductions);

// The lanes behind the last row or column hold what a map computes there, and no result.
TEST_P(CpuReductions, AlongRowsAndColumns) {
  for (const Shape &shape : kShapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    GuardedBuffer x(size_t(shape.rows * shape.columns) * 4);
    draw(x);
    for (int64_t i = 0; i < shape.rows * shape.columns; ++i)
      x.as<float>()[i] -= 300; // so that a lane of zeros would be the greatest
    const Results results = reduce(shape, "100.0", x);
    auto check = [&](int64_t first, int64_t count, int64_t step, float sum, float most) {
      float expectedSum = 0, expectedMost = -kInfinity;
      for (int64_t i = 0; i < count; ++i) {
        const float element = x.as<float>()[first + i * step] + 100;
        expectedSum += element;
        expectedMost = std::max(expectedMost, element);
      }
      ASSERT_EQ(sum, expectedSum) << "from " << first;
      ASSERT_EQ(most, expectedMost) << "from " << first;
    };
    for (int64_t column = 0; column < shape.columns; ++column)
      check(column, shape.rows, shape.columns, results.columnSums[size_t(column)],
            results.columnMaxima[size_t(column)]);
    for (int64_t row = 0; row < shape.rows; ++row)
      check(row * shape.columns, shape.columns, 1, results.rowSums[size_t(row)], results.rowMaxima[size_t(row)]);
  }
}

TEST_P(CpuReductions, ASumOfNegativeZerosIsOne) {
  for (const Shape &shape : kShapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    GuardedBuffer x(size_t(shape.rows * shape.columns) * 4);
    std::fill_n(x.as<float>(), shape.rows * shape.columns, -0.0f);
    const Results results = reduce(shape, "-0.0", x);
    for (const std::vector<float> &sums : {results.columnSums, results.rowSums})
      for (const float sum : sums)
        ASSERT_TRUE(sum == 0 && std::signbit(sum)) << sum;
  }
}

struct Product {
  int64_t depth, rows, columns;
};

// acc + a^T b, where `a` is computed and is a left side of another product too. `b` is also read as it lies.
class CpuTransposedLeft : public CpuColumnOperations {
protected:
  void check(const Product &shape, bool transposeB, bool annihilates) {
    SCOPED_TRACE(testing::Message() << shape.depth << " x " << shape.rows << " x " << shape.columns << " transposed "
                                    << transposeB << " annihilates " << annihilates);
    const int64_t bRows = transposeB ? shape.columns : shape.depth, bColumns = transposeB ? shape.depth : shape.columns;
    const TileKernel kernel(fill(R"(
      func.func @f(%a: !tile.view<f32, 1>, %b: !tile.view<f32, 1>, %c: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<f32, 1>) {
        %ta = tile.load %a ${ROW} : !tile.view<f32, 1> -> tensor<${K}x${M}xf32>
        %computed = arith.negf %ta : tensor<${K}x${M}xf32>
        %tb = tile.load %b ${ROW} : !tile.view<f32, 1> -> tensor<${B}xf32>
        %tc = tile.load %c ${ROW} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
        %r = tile.dot %computed, %tb, %tc {${FLAGS}} : tensor<${K}x${M}xf32>, tensor<${B}xf32> -> tensor<${M}x${N}xf32>
        tile.store %r, %y ${ROW} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
        %zero = arith.constant dense<0.0> : tensor<${K}x${N}xf32>
        %s = tile.dot %computed, %tc, %zero : tensor<${K}x${M}xf32>, tensor<${M}x${N}xf32> -> tensor<${K}x${N}xf32>
        tile.store %s, %z ${ROW} : tensor<${K}x${N}xf32>, !tile.view<f32, 1>
        return
      })",
                                 {{"ROW", kRow},
                                  {"K", std::to_string(shape.depth)},
                                  {"M", std::to_string(shape.rows)},
                                  {"N", std::to_string(shape.columns)},
                                  {"B", std::to_string(bRows) + "x" + std::to_string(bColumns)},
                                  {"FLAGS", std::string("transpose_a") + (transposeB ? ", transpose_b" : "") +
                                                (annihilates ? ", zero_annihilates" : "")}}),
                            GetParam());
    GuardedBuffer a(size_t(shape.depth * shape.rows) * 4), b(size_t(bRows * bColumns) * 4),
        c(size_t(shape.rows * shape.columns) * 4), y(c.size()), z(size_t(shape.depth * shape.columns) * 4);
    for (GuardedBuffer *buffer : {&a, &b, &c})
      draw(*buffer);
    auto bAt = [&](int64_t k, int64_t column) -> float & {
      return b.as<float>()[transposeB ? column * shape.depth + k : k * shape.columns + column];
    };
    if (annihilates)
      for (int64_t column = 0; column < shape.columns; ++column) {
        bAt(0, column) = column % 2 ? kNan : kInfinity;
        bAt(shape.depth - 1, column) = -kInfinity;
      }
    if (annihilates)
      for (int64_t row = 0; row < shape.rows; ++row) {
        a.as<float>()[row] = 0;
        if (row % 3)
          a.as<float>()[(shape.depth - 1) * shape.rows + row] = -0.0f;
      }
    Slots slots;
    slots.view(a.as<void>(), {shape.rows}).view(b.as<void>(), {bColumns}).view(c.as<void>(), {shape.columns});
    slots.view(y.as<void>(), {shape.columns}).view(z.as<void>(), {shape.columns});
    kernel.run(slots);
    for (int64_t row = 0; row < shape.rows; ++row)
      for (int64_t column = 0; column < shape.columns; ++column) {
        float sum = c.as<float>()[row * shape.columns + column];
        for (int64_t k = 0; k < shape.depth; ++k) {
          const float left = -a.as<float>()[k * shape.rows + row];
          if (!annihilates || left != 0)
            sum += left * bAt(k, column);
        }
        const float got = y.as<float>()[row * shape.columns + column];
        ASSERT_TRUE(got == sum || (std::isnan(got) && std::isnan(sum)))
            << row << ", " << column << ": " << got << " for " << sum;
      }
    for (int64_t k = 0; k < shape.depth; ++k)
      for (int64_t column = 0; column < shape.columns; ++column) {
        float sum = 0;
        for (int64_t row = 0; row < shape.rows; ++row)
          sum -= a.as<float>()[k * shape.rows + row] * c.as<float>()[row * shape.columns + column];
        ASSERT_EQ(z.as<float>()[k * shape.columns + column], sum) << k << ", " << column;
      }
  }
};
INSTANTIATE_TEST_SUITE_P(Levels, CpuTransposedLeft, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuTransposedLeft);

constexpr Product kProducts[] = {{1, 1, 1}, {16, 32, 48}, {37, 19, 5}, {64, 33, 16}, {8, 70, 17}};

TEST_P(CpuTransposedLeft, EqualsPlainLoops) {
  for (const Product &shape : kProducts)
    for (bool transposeB : {false, true})
      check(shape, transposeB, /*annihilates=*/false);
}

TEST_P(CpuTransposedLeft, ZerosAnnihilate) {
  for (const Product &shape : kProducts)
    for (bool transposeB : {false, true})
      check(shape, transposeB, /*annihilates=*/true);
}

// A tile that is the left side of one product and the right side of another.
TEST_P(CpuTransposedLeft, OneTileOnBothSides) {
  const TileKernel kernel(fill(R"(
    func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>) {
      %t = tile.load %x ${ROW} : !tile.view<f32, 1> -> tensor<19x19xf32>
      %zero = arith.constant dense<0.0> : tensor<19x19xf32>
      %r = tile.dot %t, %t, %zero : tensor<19x19xf32>, tensor<19x19xf32> -> tensor<19x19xf32>
      tile.store %r, %y ${ROW} : tensor<19x19xf32>, !tile.view<f32, 1>
      return
    })",
                               {{"ROW", kRow}}),
                          GetParam());
  constexpr int64_t kSize = 19;
  GuardedBuffer x(kSize * kSize * 4), y(x.size());
  draw(x);
  Slots slots;
  slots.view(x.as<void>(), {kSize}).view(y.as<void>(), {kSize});
  kernel.run(slots);
  for (int64_t row = 0; row < kSize; ++row)
    for (int64_t column = 0; column < kSize; ++column) {
      float sum = 0;
      for (int64_t k = 0; k < kSize; ++k)
        sum += x.as<float>()[row * kSize + k] * x.as<float>()[k * kSize + column];
      ASSERT_EQ(y.as<float>()[row * kSize + column], sum) << row << ", " << column;
    }
}

} // namespace
} // namespace nsa::test
