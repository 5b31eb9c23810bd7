// Each tile operation on the CPU against plain loops, at sizes that are no multiple of anything, for every feature
// level.
#include "runtime/base/half.h"
#include "tests/harness/seed.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace nsa::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

std::mt19937 &generator() {
  static std::mt19937 engine(freshSeed());
  return engine;
}

float draw() { return std::uniform_real_distribution<float>(-2, 2)(generator()); }

// A row-major matrix of floats between guard pages, drawn at random.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t stride = 0)
      : rows(rows), columns(columns), stride(stride ? stride : columns),
        memory(size_t((rows - 1) * this->stride + columns) * 4) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        at(i, j) = draw();
  }
  float &at(int64_t i, int64_t j) { return memory.as<float>()[i * stride + j]; }

  int64_t rows, columns, stride;
  GuardedBuffer memory;
};

Slots &operator<<(Slots &slots, Matrix &matrix) { return slots.view(matrix.memory.as<void>(), {matrix.stride}); }

struct Shape {
  int64_t rows, columns;
  std::string features;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::string &features : runnableFeatures())
    for (int64_t rows : {1, 3, 17, 32})
      for (int64_t columns : {1, 5, 33, 64})
        all.push_back({rows, columns, features});
  return all;
}

std::string fillShape(std::string text, const Shape &shape, std::map<std::string, std::string> more = {}) {
  more["M"] = std::to_string(shape.rows);
  more["N"] = std::to_string(shape.columns);
  more["LOAD"] = "rows(%n) {\n %yes = arith.constant true\n tile.at [%n] if %yes\n }";
  return fill(std::move(text), more);
}

class CpuKernel : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, CpuKernel, testing::ValuesIn(shapes()), [](const auto &info) {
  return std::to_string(info.param.rows) + "x" + std::to_string(info.param.columns) + "_" +
         info.param.features.substr(7);
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuKernel);

void PrintTo(const Shape &shape, std::ostream *out) {
  *out << shape.rows << "x" << shape.columns << " " << shape.features;
}

// Rows are reversed and every third does not exist; one column fewer than the tile has exists.
template <typename T>
void checkTransfer(const Shape &shape, const std::string &element, T (*encode)(float), float (*decode)(T)) {
  const int64_t valid = std::max<int64_t>(1, shape.columns - 1);
  const std::string text =
      fillShape(R"(
    func.func @f(%x: !tile.view<${T}, 1>, %y: !tile.view<${T}, 1>) {
      %last = arith.constant ${LAST} : i32
      %three = arith.constant 3 : i32
      %two = arith.constant 2 : i32
      %t = tile.load %x rows(%r) {
        %row = arith.subi %last, %r : i32
        %rest = arith.remsi %r, %three : i32
        %ok = arith.cmpi ne, %rest, %two : i32
        tile.at [%row] if %ok
      } columns(${VALID}) : !tile.view<${T}, 1> -> tensor<${M}x${N}x${T}>
      %one = arith.constant 1 : i32
      tile.store %t, %y rows(%r) {
        %rest = arith.remsi %r, %three : i32
        %ok = arith.cmpi ne, %rest, %one : i32
        tile.at [%r] if %ok
      } columns(${VALID}) : tensor<${M}x${N}x${T}>, !tile.view<${T}, 1>
      return
    })",
                shape, {{"T", element}, {"LAST", std::to_string(shape.rows - 1)}, {"VALID", std::to_string(valid)}});
  TileKernel kernel(text, shape.features);
  // The rows that do not exist have no memory behind them: the last row of x is row 0 of the tile.
  const int64_t stride = valid + 3;
  GuardedBuffer x(size_t((shape.rows - 1) * stride + valid) * sizeof(T));
  GuardedBuffer y(x.size());
  for (size_t i = 0; i < x.size() / sizeof(T); ++i)
    x.as<T>()[i] = encode(draw());
  std::memset(y.as<char>(), 0x5a, y.size());
  Slots slots;
  slots.view(x.as<void>(), {stride}).view(y.as<void>(), {stride});
  kernel.run(slots);
  T untouched;
  std::memset(&untouched, 0x5a, sizeof(T));
  for (int64_t i = 0; i < shape.rows; ++i) {
    for (int64_t j = 0; j < (i + 1 < shape.rows ? stride : valid); ++j) {
      T expected = untouched;
      if (j < valid && i % 3 != 1)
        expected = i % 3 == 2 ? encode(0.0f) : x.as<T>()[(shape.rows - 1 - i) * stride + j];
      ASSERT_EQ(decode(y.as<T>()[i * stride + j]), decode(expected)) << "row " << i << " column " << j;
    }
  }
}

TEST_P(CpuKernel, LoadStoreF32) {
  checkTransfer<float>(GetParam(), "f32", [](float x) { return x; }, [](float x) { return x; });
}
TEST_P(CpuKernel, LoadStoreBf16) { checkTransfer<uint16_t>(GetParam(), "bf16", floatToBf16, bf16ToFloat); }
TEST_P(CpuKernel, LoadStoreF16) { checkTransfer<uint16_t>(GetParam(), "f16", floatToFp16, fp16ToFloat); }
TEST_P(CpuKernel, LoadStoreI32) {
  checkTransfer<int32_t>(
      GetParam(), "i32", [](float x) { return int32_t(x * 1e6f); }, [](int32_t x) { return float(x); });
}

TEST_P(CpuKernel, MapSeesRowsScalarsAndIndices) {
  const std::string text = fillShape(R"(
    func.func @f(%x: !tile.view<f32, 1>, %row: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %s: f32) {
      %t = tile.load %x ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
      %v = tile.load %row ${LOAD} : !tile.view<f32, 1> -> tensor<${M}xf32>
      %wide = tile.broadcast %v : tensor<${M}xf32> -> tensor<${M}x${N}xf32>
      %scale = tile.splat %s : tensor<${M}x${N}xf32>
      %i = tile.iota 0 : tensor<${M}x${N}xi32>
      %j = tile.iota 1 : tensor<${M}x${N}xi32>
      %below = arith.cmpi sge, %i, %j : tensor<${M}x${N}xi32>
      %sum = arith.addi %i, %j : tensor<${M}x${N}xi32>
      %sum_f = arith.sitofp %sum : tensor<${M}x${N}xi32> to tensor<${M}x${N}xf32>
      %scaled = math.fma %t, %scale, %wide : tensor<${M}x${N}xf32>
      %r = arith.select %below, %scaled, %sum_f : tensor<${M}x${N}xi1>, tensor<${M}x${N}xf32>
      tile.store %r, %y ${LOAD} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
      return
    })",
                                     GetParam());
  TileKernel kernel(text, GetParam().features);
  const auto [m, n, features] = GetParam();
  Matrix x(m, n), row(m, 1), y(m, n);
  Slots slots;
  (slots << x << row << y).f32(1.5f);
  kernel.run(slots);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      ASSERT_EQ(y.at(i, j), i >= j ? std::fma(x.at(i, j), 1.5f, row.at(i, 0)) : float(i + j)) << i << " " << j;
}

TEST_P(CpuKernel, BooleanTileCrossesMaps) {
  // The mask has two users, so it is a tile of its own and lies in memory.
  const std::string text = fillShape(R"(
    func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<i32, 1>) {
      %t = tile.load %x ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
      %zero = arith.constant dense<0.0> : tensor<${M}x${N}xf32>
      %positive = arith.cmpf ogt, %t, %zero : tensor<${M}x${N}xf32>
      %kept = arith.select %positive, %t, %zero : tensor<${M}x${N}xi1>, tensor<${M}x${N}xf32>
      %count = arith.extui %positive : tensor<${M}x${N}xi1> to tensor<${M}x${N}xi32>
      tile.store %kept, %y ${LOAD} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
      tile.store %count, %z ${LOAD} : tensor<${M}x${N}xi32>, !tile.view<i32, 1>
      return
    })",
                                     GetParam());
  TileKernel kernel(text, GetParam().features);
  const auto [m, n, features] = GetParam();
  Matrix x(m, n), y(m, n), z(m, n);
  Slots slots;
  slots << x << y << z;
  kernel.run(slots);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      ASSERT_EQ(y.at(i, j), std::max(x.at(i, j), 0.0f));
      int32_t count;
      std::memcpy(&count, &z.at(i, j), 4);
      ASSERT_EQ(count, x.at(i, j) > 0);
    }
  }
}

TEST_P(CpuKernel, Reduce) {
  const std::string text = fillShape(R"(
    func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<f32, 1>) {
      %t = tile.load %x ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
      %max = tile.reduce max %t : tensor<${M}x${N}xf32> -> tensor<${M}xf32>
      %sum = tile.reduce add %t : tensor<${M}x${N}xf32> -> tensor<${M}xf32>
      tile.store %max, %y ${LOAD} : tensor<${M}xf32>, !tile.view<f32, 1>
      tile.store %sum, %z ${LOAD} : tensor<${M}xf32>, !tile.view<f32, 1>
      return
    })",
                                     GetParam());
  TileKernel kernel(text, GetParam().features);
  const auto [m, n, features] = GetParam();
  Matrix x(m, n), y(m, 1), z(m, 1);
  x.at(0, n - 1) = -kInfinity;
  Slots slots;
  slots << x << y << z;
  kernel.run(slots);
  for (int64_t i = 0; i < m; ++i) {
    float max = -kInfinity;
    double sum = 0, size = 0;
    for (int64_t j = 0; j < n; ++j) {
      max = std::max(max, x.at(i, j));
      sum += x.at(i, j);
      size += std::fabs(x.at(i, j));
    }
    ASSERT_EQ(y.at(i, 0), max) << i;
    if (std::isinf(sum))
      ASSERT_EQ(z.at(i, 0), -kInfinity);
    else
      ASSERT_NEAR(z.at(i, 0), sum, 1e-6 * size) << i; // n roundings of 6e-8 each, n <= 64
  }
}

// Rows x depth times depth x columns; `annihilate` plants NaN in B where A is zero.
void checkDot(const Shape &shape, int64_t depth, bool transpose, bool annihilate, bool accumulate) {
  const std::string text =
      fill(R"(
    func.func @f(%a: !tile.view<f32, 1>, %b: !tile.view<f32, 1>, %c: !tile.view<f32, 1>, %y: !tile.view<f32, 1>) {
      %ta = tile.load %a ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x${K}xf32>
      %tb = tile.load %b ${LOAD} : !tile.view<f32, 1> -> tensor<${B}xf32>
      ${ACC}
      %r = tile.dot %ta, %tb, %tc ${FLAGS} : tensor<${M}x${K}xf32>, tensor<${B}xf32> -> tensor<${M}x${N}xf32>
      tile.store %r, %y ${LOAD} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
      return
    })",
           {{"FLAGS", transpose ? (annihilate ? "{transpose_b, zero_annihilates}" : "{transpose_b}")
                                : (annihilate ? "{zero_annihilates}" : "")},
            {"ACC", accumulate ? "%tc = tile.load %c ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>"
                               : "%tc = arith.constant dense<0.0> : tensor<${M}x${N}xf32>"},
            {"B", transpose ? "${N}x${K}" : "${K}x${N}"},
            {"K", std::to_string(depth)}});
  const auto [m, n, features] = shape;
  TileKernel kernel(fill(fillShape(text, shape), {{"K", std::to_string(depth)}}), features);
  Matrix a(m, depth), b(transpose ? n : depth, transpose ? depth : n), c(m, n), y(m, n);
  if (annihilate) {
    for (int64_t i = 0; i < m; ++i)
      a.at(i, depth / 2) = i % 2 ? -0.0f : 0.0f;
    for (int64_t j = 0; j < n; ++j)
      (transpose ? b.at(j, depth / 2) : b.at(depth / 2, j)) = j % 2 ? kNan : kInfinity;
  }
  Slots slots;
  slots << a << b << c << y;
  kernel.run(slots);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = accumulate ? c.at(i, j) : 0, size = std::fabs(sum);
      for (int64_t k = 0; k < depth; ++k) {
        if (annihilate && a.at(i, k) == 0)
          continue;
        const double product = double(a.at(i, k)) * (transpose ? b.at(j, k) : b.at(k, j));
        sum += product;
        size += std::fabs(product);
      }
      ASSERT_NEAR(y.at(i, j), sum, 1e-6 * size) << i << " " << j;
    }
  }
}

TEST_P(CpuKernel, Dot) {
  for (int64_t depth : {1, 7, 64})
    for (bool transpose : {false, true})
      for (bool annihilate : {false, true})
        for (bool accumulate : {false, true}) {
          SCOPED_TRACE(testing::Message() << "depth " << depth << " transpose " << transpose << " annihilate "
                                          << annihilate << " accumulate " << accumulate);
          checkDot(GetParam(), depth, transpose, annihilate, accumulate);
        }
}

TEST_P(CpuKernel, ZeroAnnihilatesKeepsNanOfA) {
  const std::string text = fillShape(R"(
    func.func @f(%a: !tile.view<f32, 1>, %b: !tile.view<f32, 1>, %y: !tile.view<f32, 1>) {
      %ta = tile.load %a ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x2xf32>
      %tb = tile.load %b ${LOAD} : !tile.view<f32, 1> -> tensor<2x${N}xf32>
      %tc = arith.constant dense<0.0> : tensor<${M}x${N}xf32>
      %r = tile.dot %ta, %tb, %tc {zero_annihilates} : tensor<${M}x2xf32>, tensor<2x${N}xf32> -> tensor<${M}x${N}xf32>
      tile.store %r, %y ${LOAD} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
      return
    })",
                                     GetParam());
  const auto [m, n, features] = GetParam();
  TileKernel kernel(text, features);
  Matrix a(m, 2), b(2, n), y(m, n);
  a.at(0, 0) = kNan;
  Slots slots;
  slots << a << b << y;
  kernel.run(slots);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      ASSERT_EQ(std::isnan(y.at(i, j)), i == 0) << i << " " << j;
}

TEST_P(CpuKernel, CastRoundsToNearestEven) {
  for (const char *element : {"bf16", "f16"}) {
    const std::string text = fillShape(R"(
      func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>, %z: !tile.view<${T}, 1>) {
        %t = tile.load %x ${LOAD} : !tile.view<f32, 1> -> tensor<${M}x${N}xf32>
        %small = tile.cast %t : tensor<${M}x${N}xf32> -> tensor<${M}x${N}x${T}>
        %wide = tile.cast %small : tensor<${M}x${N}x${T}> -> tensor<${M}x${N}xf32>
        tile.store %wide, %y ${LOAD} : tensor<${M}x${N}xf32>, !tile.view<f32, 1>
        tile.store %small, %z ${LOAD} : tensor<${M}x${N}x${T}>, !tile.view<${T}, 1>
        return
      })",
                                       GetParam(), {{"T", element}});
    const auto [m, n, features] = GetParam();
    TileKernel kernel(text, features);
    Matrix x(m, n), y(m, n);
    GuardedBuffer z(size_t(m * n) * 2);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        // Any bits: ties, subnormals, overflow, NaN.
        uint32_t bits = generator()();
        if (j % 3 == 0)
          bits = (bits & 0xffff0000u) | 0x8000u;
        std::memcpy(&x.at(i, j), &bits, 4);
      }
    Slots slots;
    slots << x << y;
    slots.view(z.as<void>(), {n});
    kernel.run(slots);
    const bool isBf16 = element[0] == 'b';
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const uint16_t bits = isBf16 ? floatToBf16(x.at(i, j)) : floatToFp16(x.at(i, j));
        const float value = isBf16 ? bf16ToFloat(bits) : fp16ToFloat(bits);
        const uint16_t stored = z.as<uint16_t>()[i * n + j];
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(y.at(i, j)) && std::isnan(isBf16 ? bf16ToFloat(stored) : fp16ToFloat(stored)));
          continue;
        }
        ASSERT_EQ(y.at(i, j), value);
        ASSERT_EQ(stored, bits);
      }
    }
  }
}

} // namespace
} // namespace nsa::test
