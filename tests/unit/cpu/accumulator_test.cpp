// Dots that start from a map of their accumulator, which no tile is made for: what is alive when, and the register
// blocking they work in.
#include "compiler/cpu/DotLowering.h"
#include "tests/harness/seed.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace nsa::test {
namespace {

constexpr int64_t kSize = 19; // neither panels nor columns come out even

class CpuAccumulator : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    std::mt19937 engine(freshSeed());
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::vector<float> *values : {&a, &b, &o, &d})
      for (float &value : *values)
        value = uniform(engine);
  }

  // A program over tiles %a, %b, %o, the row %d and scalars %scale, %n and %flag; it yields %y, and `KEPT` to z.
  void run(const std::string &body, const std::string &kept, int32_t n = 0, int32_t flag = 0) {
    const std::string text = fill(
        R"(
      func.func @f(%va: !tile.view<f32, 1>, %vb: !tile.view<f32, 1>, %vo: !tile.view<f32, 1>, %vd: !tile.view<f32, 1>,
                   %vy: !tile.view<f32, 1>, %vz: !tile.view<f32, 1>, %scale: f32, %n: i32, %flag_word: i32) {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %flag = arith.cmpi ne, %flag_word, %c0 : i32
        %a = tile.load %va ${ROWS} : !tile.view<f32, 1> -> ${T}
        %b = tile.load %vb ${ROWS} : !tile.view<f32, 1> -> ${T}
        %o = tile.load %vo ${ROWS} : !tile.view<f32, 1> -> ${T}
        %d = tile.load %vd ${ROWS} : !tile.view<f32, 1> -> tensor<19xf32>
        %wide = tile.broadcast %d : tensor<19xf32> -> ${T}
        %scales = tile.splat %scale : ${T}
        ${BODY}
        tile.store %y, %vy ${ROWS} : ${T}, !tile.view<f32, 1>
        tile.store ${KEPT}, %vz ${ROWS} : ${T}, !tile.view<f32, 1>
        return
      })",
        {{"BODY", body}, {"KEPT", kept}});
    TileKernel kernel(fill(fill(text, {{"DOT", "${T}, ${T} -> ${T}"}}),
                           {{"T", "tensor<19x19xf32>"},
                            {"ROWS", "rows(%row) {\n%yes = arith.constant true\ntile.at [%row] if %yes\n}"}}),
                      GetParam());
    y.assign(y.size(), NAN);
    z.assign(z.size(), NAN);
    Slots slots;
    for (std::vector<float> *values : {&a, &b, &o})
      slots.view(values->data(), {kSize});
    slots.view(d.data(), {1}).view(y.data(), {kSize}).view(z.data(), {kSize}).f32(kScale).i32(n).i32(flag);
    kernel.run(slots);
  }

  // start * d * scale + left * b
  std::vector<double> expected(const std::vector<double> &start, const std::vector<float> &left) const {
    std::vector<double> result;
    for (int64_t i = 0; i < kSize; ++i)
      for (int64_t j = 0; j < kSize; ++j) {
        double sum = start[size_t(i * kSize + j)] * d[size_t(i)] * kScale;
        for (int64_t k = 0; k < kSize; ++k)
          sum += double(left[size_t(i * kSize + k)]) * b[size_t(k * kSize + j)];
        result.push_back(sum);
      }
    return result;
  }
  std::vector<double> start() const { return {o.begin(), o.end()}; }

  static void expectNear(const std::vector<float> &got, const std::vector<double> &wanted) {
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-4) << "element " << i;
  }

  static constexpr float kScale = 0.75f;
  std::vector<float> a = std::vector<float>(kSize * kSize), b = a, o = a, y = a, z = a, d = std::vector<float>(kSize);
};
INSTANTIATE_TEST_SUITE_P(Levels, CpuAccumulator, testing::ValuesIn(runnableFeatures()),
                         [](const auto &info) { return info.param.substr(7); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuAccumulator);

const std::string kScaled = R"(
        %od = arith.mulf %o, %wide : ${T}
        %ods = arith.mulf %od, %scales : ${T}
)";

TEST_P(CpuAccumulator, IsScaledAsItIsRead) {
  run(kScaled + "%y = tile.dot %a, %b, %ods : ${DOT}", "%a");
  expectNear(y, expected(start(), a));
  EXPECT_EQ(z, a);
}

TEST_P(CpuAccumulator, LeavesItsSourceAlone) {
  run(kScaled + "%y = tile.dot %a, %b, %ods : ${DOT}", "%o");
  expectNear(y, expected(start(), a));
  EXPECT_EQ(z, o);
}

TEST_P(CpuAccumulator, MayBeALeftSideToo) {
  run(kScaled + "%y = tile.dot %o, %b, %ods : ${DOT}", "%a");
  expectNear(y, expected(start(), o));
  EXPECT_EQ(z, a);
}

TEST_P(CpuAccumulator, IsReadByDotsInBothArms) {
  for (int32_t flag : {0, 1}) {
    run(kScaled + R"(
        %y = scf.if %flag -> (${T}) {
          %0 = tile.dot %a, %b, %ods {zero_annihilates} : ${DOT}
          scf.yield %0 : ${T}
        } else {
          %1 = tile.dot %o, %b, %ods : ${DOT}
          scf.yield %1 : ${T}
        })",
        "%a", 0, flag);
    expectNear(y, expected(start(), flag ? a : o));
    EXPECT_EQ(z, a);
  }
}

TEST_P(CpuAccumulator, IsCarriedByALoop) {
  run(R"(
        %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %o) -> (${T}) : i32 {
          %od = arith.mulf %sum, %wide : ${T}
          %ods = arith.mulf %od, %scales : ${T}
          %next = tile.dot %a, %b, %ods : ${DOT}
          scf.yield %next : ${T}
        })",
      "%o", 3);
  expectNear(y, expected(expected(expected(start(), a), a), a));
  EXPECT_EQ(z, o);
}

TEST_P(CpuAccumulator, LastsThroughALoop) {
  run(kScaled + R"(
        %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %a) -> (${T}) : i32 {
          %next = tile.dot %sum, %b, %ods : ${DOT}
          scf.yield %next : ${T}
        })",
      "%a", 2);
  const std::vector<double> once = expected(start(), a);
  expectNear(y, expected(start(), std::vector<float>(once.begin(), once.end())));
  EXPECT_EQ(z, a);
}

// What somebody else reads, or depends on the place in the tile, is made as a tile.
TEST_P(CpuAccumulator, IsATileWhenItMustBe) {
  run(kScaled + "%y = tile.dot %a, %b, %ods : ${DOT}", "%ods");
  expectNear(y, expected(start(), a));
  for (size_t i = 0; i < z.size(); ++i)
    ASSERT_FLOAT_EQ(z[i], o[i] * d[i / kSize] * kScale);
  run(R"(
        %column = tile.iota 1 : tensor<19x19xi32>
        %line = tile.iota 0 : tensor<19x19xi32>
        %is_past = arith.cmpi sle, %column, %line : tensor<19x19xi32>
        %masked = arith.select %is_past, %o, %scales : tensor<19x19xi1>, ${T}
        %y = tile.dot %a, %b, %masked : ${DOT})",
      "%a");
  for (int64_t i = 0; i < kSize; ++i)
    for (int64_t j = 0; j < kSize; ++j) {
      double sum = j <= i ? o[size_t(i * kSize + j)] : kScale;
      for (int64_t k = 0; k < kSize; ++k)
        sum += double(a[size_t(i * kSize + k)]) * b[size_t(k * kSize + j)];
      ASSERT_NEAR(y[size_t(i * kSize + j)], sum, 1e-4);
    }
}

TEST(CpuMicroTile, IsTheSmallestOfTheFast) {
  using cpu::chooseMicroTile;
  using cpu::MicroTile;
  EXPECT_EQ(chooseMicroTile(16, 4, 32, false), (MicroTile{4, 4}));
  EXPECT_EQ(chooseMicroTile(16, 8, 128, true), (MicroTile{4, 4}));
  EXPECT_EQ(chooseMicroTile(16, 2, 24, false), (MicroTile{2, 8}));
  EXPECT_EQ(chooseMicroTile(8, 8, 32, false), (MicroTile{3, 4}));
  EXPECT_EQ(chooseMicroTile(16, 1, 1, false), (MicroTile{1, 1}));
}

TEST(CpuMicroTile, LeavesRegistersForOperands) {
  for (int64_t panels = 1; panels <= 9; ++panels)
    for (int64_t columns = 1; columns <= 70; ++columns)
      for (bool masked : {false, true}) {
        const cpu::MicroTile wide = cpu::chooseMicroTile(16, panels, columns, masked);
        EXPECT_LE(wide.panels * wide.columns + wide.panels + 1, 32) << panels << "x" << columns;
        const cpu::MicroTile narrow = cpu::chooseMicroTile(8, panels, columns, masked);
        EXPECT_LE(narrow.panels * narrow.columns + narrow.panels + 1, 16) << panels << "x" << columns;
        EXPECT_LE(narrow.panels, panels);
        EXPECT_LE(narrow.columns, columns);
      }
}

} // namespace
} // namespace nsa::test
