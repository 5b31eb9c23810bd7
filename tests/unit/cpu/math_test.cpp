// Functions of the CPU backend that are plain arithmetic, against those of the C++ library, for every feature level.
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

class CpuMath : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, CpuMath, testing::ValuesIn(runnableFeatures()),
                         [](const auto &info) { return info.param.substr(7); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuMath);

// %e for each value of %t, which `text` computes; one program per 32 values.
std::vector<float> evaluateText(const std::string &text, const std::string &features, std::vector<float> values) {
  const TileKernel kernel(fill(R"(
    func.func @f(%x: !tile.view<f32, 1>, %y: !tile.view<f32, 1>) {
      %size = arith.constant 32 : i32
      %block = tile.program_id x
      %first = arith.muli %block, %size : i32
      %t = tile.load %x rows(%r) {
        %i = arith.addi %first, %r : i32
        %yes = arith.constant true
        tile.at [%i] if %yes
      } : !tile.view<f32, 1> -> tensor<32xf32>
      ${TEXT}
      tile.store %e, %y rows(%r) {
        %i = arith.addi %first, %r : i32
        %yes = arith.constant true
        tile.at [%i] if %yes
      } : tensor<32xf32>, !tile.view<f32, 1>
      return
    })",
                               std::map<std::string, std::string>{{"TEXT", text}}),
                          features);
  values.resize((values.size() + 31) / 32 * 32);
  std::vector<float> results(values.size());
  Slots slots;
  slots.view(values.data(), {1}).view(results.data(), {1});
  for (size_t block = 0; block < values.size() / 32; ++block)
    kernel.run(slots, int32_t(block));
  return results;
}

std::vector<float> evaluate(const std::string &op, const std::string &features, std::vector<float> values) {
  return evaluateText("%e = " + op + " %t : tensor<32xf32>", features, std::move(values));
}

TEST_P(CpuMath, Exp2) {
  std::vector<float> x = {0.0f,      -0.0f,   1.0f,    -1.0f,   127.99999f, 128.0f,     1e30f,
                          kInfinity, -125.9f, -127.0f, -150.0f, -1e30f,     -kInfinity, kNan};
  const size_t special = x.size();
  for (int i = 0; i < 20000; ++i)
    x.push_back(std::uniform_real_distribution<float>(-126, 128)(generator()));
  const std::vector<float> y = evaluate("math.exp2", GetParam(), x);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1.0f);
  EXPECT_EQ(y[2], 2.0f);
  EXPECT_EQ(y[3], 0.5f);
  EXPECT_TRUE(std::isfinite(y[4]));
  for (int i : {5, 6, 7})
    EXPECT_EQ(y[i], kInfinity);
  for (int i : {9, 10, 11, 12})
    EXPECT_EQ(y[i], 0.0f) << x[i];
  EXPECT_TRUE(std::isnan(y[13]));
  double worst = 0;
  for (size_t i = special; i < x.size(); ++i) {
    const double expected = std::exp2(double(x[i]));
    worst = std::max(worst, std::fabs(y[i] - expected) / expected);
  }
  EXPECT_LE(worst, 2e-7);
  std::printf("exp2: largest relative error %.3g\n", worst);
}

// A third of each value is no float. What f32 leaves of a result is the second half of its digits.
TEST_P(CpuMath, Exp2OfF64) {
  const std::string power = R"(
      %third = arith.constant dense<0.33333333333333331> : tensor<32xf64>
      %w = arith.extf %t : tensor<32xf32> to tensor<32xf64>
      %s = arith.mulf %w, %third : tensor<32xf64>
      %p = math.exp2 %s : tensor<32xf64>
      %high = arith.truncf %p : tensor<32xf64> to tensor<32xf32>
  )";
  const std::string whole = power + "%zero = arith.constant dense<0.0> : tensor<32xf32>\n"
                                    "%e = arith.addf %high, %zero : tensor<32xf32>";
  const std::string rest = power + R"(
      %exact = arith.extf %high : tensor<32xf32> to tensor<32xf64>
      %low = arith.subf %p, %exact : tensor<32xf64>
      %e = arith.truncf %low : tensor<32xf64> to tensor<32xf32>)";
  const std::vector<float> special = {0.0f, 3.0f, 1e30f, kInfinity, -1e30f, -kInfinity, kNan};
  const std::vector<float> known = evaluateText(whole, GetParam(), special);
  EXPECT_EQ(known[0], 1.0f);
  EXPECT_EQ(known[1], 2.0f);
  EXPECT_EQ(known[2], kInfinity);
  EXPECT_EQ(known[3], kInfinity);
  EXPECT_EQ(known[4], 0.0f);
  EXPECT_EQ(known[5], 0.0f);
  EXPECT_TRUE(std::isnan(known[6]));
  std::vector<float> x;
  for (int i = 0; i < 20000; ++i)
    x.push_back(std::uniform_real_distribution<float>(-180, 360)(generator()));
  const std::vector<float> high = evaluateText(whole, GetParam(), x), low = evaluateText(rest, GetParam(), x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp2(double(x[i]) * 0.33333333333333331);
    worst = std::max(worst, std::fabs(double(high[i]) + low[i] - expected) / expected);
  }
  // The two floats have 48 digits.
  EXPECT_LE(worst, 5e-15);
  std::printf("exp2 of f64: largest relative error %.3g\n", worst);
}

TEST_P(CpuMath, RoundEvenOfF64) {
  const std::vector<float> x = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1048575.5f, 3.25f, -3.75f};
  const std::vector<float> y = evaluateText(R"(
      %w = arith.extf %t : tensor<32xf32> to tensor<32xf64>
      %n = math.roundeven %w : tensor<32xf64>
      %a = math.absf %n : tensor<32xf64>
      %e = arith.truncf %a : tensor<32xf64> to tensor<32xf32>)",
                                            GetParam(), x);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(y[i], std::fabs(std::nearbyint(x[i]))) << x[i];
}

TEST_P(CpuMath, Erf) {
  std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, 3.4e38f, -4.5f, kNan, 1e-45f, 1e-40f, 1.0f, -1.0f};
  const size_t special = x.size();
  for (int i = 0; i < 20000; ++i)
    x.push_back(std::uniform_real_distribution<float>(-5, 5)(generator()));
  for (int i = 0; i < 2000; ++i)
    x.push_back(std::exp2(std::uniform_real_distribution<float>(-126, 0)(generator())));
  const std::vector<float> y = evaluate("math.erf", GetParam(), x);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_EQ(std::signbit(y[1]), true);
  for (int i : {2, 4})
    EXPECT_EQ(y[i], 1.0f);
  for (int i : {3, 5})
    EXPECT_EQ(y[i], -1.0f);
  EXPECT_TRUE(std::isnan(y[6]));
  EXPECT_EQ(y[7], 1e-45f);
  EXPECT_NEAR(y[8], 1.128e-40, 1e-43);
  EXPECT_EQ(y[9], -y[10]);
  double worst = 0;
  for (size_t i = special; i < x.size(); ++i) {
    const double expected = std::erf(double(x[i]));
    worst = std::max(worst, std::fabs(y[i] - expected) / std::fabs(expected));
  }
  EXPECT_LE(worst, 3e-7);
  std::printf("erf: largest relative error %.3g\n", worst);
}

TEST_P(CpuMath, Log2) {
  std::vector<float> x = {0.0f,  -0.0f,      1.0f, 2.0f,   0.5f,           kInfinity,
                          -1.0f, -kInfinity, kNan, 1e-45f, 1.1754944e-38f, 3.4e38f};
  const size_t special = x.size();
  for (int i = 0; i < 20000; ++i)
    x.push_back(std::exp2(std::uniform_real_distribution<float>(-149, 127)(generator())));
  for (int i = 0; i < 2000; ++i)
    x.push_back(std::uniform_real_distribution<float>(0.9f, 1.1f)(generator()));
  const std::vector<float> y = evaluate("math.log2", GetParam(), x);
  EXPECT_EQ(y[0], -kInfinity);
  EXPECT_EQ(y[1], -kInfinity);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_EQ(y[3], 1.0f);
  EXPECT_EQ(y[4], -1.0f);
  EXPECT_EQ(y[5], kInfinity);
  for (int i : {6, 7, 8})
    EXPECT_TRUE(std::isnan(y[i])) << x[i];
  EXPECT_EQ(y[9], -149.0f);
  double worst = 0;
  for (size_t i = special; i < x.size(); ++i) {
    const double expected = std::log2(double(x[i]));
    if (expected != 0)
      worst = std::max(worst, std::fabs(y[i] - expected) / std::fabs(expected));
  }
  EXPECT_LE(worst, 3e-7);
  std::printf("log2: largest relative error %.3g\n", worst);
}

} // namespace
} // namespace nsa::test
