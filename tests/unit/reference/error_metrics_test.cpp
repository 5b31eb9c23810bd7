// The metrics against their own traps: a NaN that compares false, a zero row, an infinite LSE, rows left out.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/error_metrics.h"

#include <array>
#include <cmath>
#include <limits>

namespace nsa::reference {
namespace {

TensorView floats(const std::vector<float> &values, int64_t heads, int64_t columns) {
  return {.data = reinterpret_cast<const std::byte *>(values.data()),
          .dtype = DType::kF32,
          .timeStride = heads * columns,
          .headStride = columns};
}

struct Metrics : ::testing::Test {
  std::mt19937_64 random{test::freshSeed()};
  Spec spec{.op = Operator::kDense, .dtype = DType::kF32, .queryHeads = 2, .kvHeads = 1, .qkDim = 4, .vDim = 8};
  OwnedTensor q = drawTensor(random, DType::kF32, 1, 6, 2, 4);
  OwnedTensor k = drawTensor(random, DType::kF32, 1, 6, 1, 4);
  OwnedTensor v = drawTensor(random, DType::kF32, 1, 6, 1, 8);
  Attention attention{.spec = spec, .q = q.view(), .k = k.view(), .v = v.view(), .sequences = denseSequences(1, 6, 6)};
  AttentionResult result = attend(attention);
  std::vector<float> out{result.out.begin(), result.out.end()};
  std::vector<float> lse{result.lse.begin(), result.lse.end()};

  ErrorReport report() { return compare(attention, result, floats(out, 2, 8), floats(lse, 2, 1)); }
};

TEST_F(Metrics, TheRoundedReferenceIsWithinFp32) {
  EXPECT_TRUE(report().within(toleranceOf(DType::kF32))) << report().toString(toleranceOf(DType::kF32));
}

TEST_F(Metrics, OneNanFails) {
  out[17] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(report().within(toleranceOf(DType::kBf16)));
  EXPECT_TRUE(std::isinf(report().relativeRms));
}

TEST_F(Metrics, OneNanInTheLseFails) {
  lse[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(report().within(toleranceOf(DType::kBf16)));
}

TEST_F(Metrics, OneBadRowFailsThoughTheWholeIsFine) {
  // Scale row (query 4, head 1) so that it alone is wrong by 2.5 %; in the whole that is below 1 %.
  for (int c = 0; c < 8; ++c)
    out[4 * 16 + 8 + c] *= 1.025f;
  const ErrorReport error = report();
  EXPECT_NEAR(error.worstRow, 0.025, 1e-4);
  EXPECT_EQ(error.worstQuery, 4);
  EXPECT_EQ(error.worstHead, 1);
  EXPECT_FALSE(error.within(toleranceOf(DType::kBf16)));
}

TEST_F(Metrics, LseInBaseTwoFails) {
  for (float &value : lse)
    value *= 1.442695f;
  EXPECT_FALSE(report().within(toleranceOf(DType::kBf16)));
}

TEST_F(Metrics, AnErrorInARowOfZerosFails) {
  for (int c = 0; c < 8; ++c)
    result.out[c] = 0;
  EXPECT_FALSE(report().within(toleranceOf(DType::kBf16)));
}

TEST_F(Metrics, ARowWithoutKeysIsZeroAndMinusInfinity) {
  for (int c = 0; c < 8; ++c)
    out[c] = 0, result.out[c] = 0;
  result.lse[0] = -std::numeric_limits<double>::infinity();
  lse[0] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(report().within(toleranceOf(DType::kF32))) << report().toString(toleranceOf(DType::kF32));
  for (const float wrong : {-1e30f, std::numeric_limits<float>::infinity(), 0.0f}) {
    lse[0] = wrong;
    EXPECT_FALSE(report().within(toleranceOf(DType::kBf16))) << wrong;
  }
  lse[0] = -std::numeric_limits<float>::infinity();
  lse[1] = -std::numeric_limits<float>::infinity(); // where the reference has a number
  EXPECT_FALSE(report().within(toleranceOf(DType::kBf16)));
}

TEST_F(Metrics, RowsWithoutAFiniteReferenceAreToldAndTheOthersJudged) {
  const Tolerance tolerance = toleranceOf(DType::kF32);
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    result.out[(4 * 2 + 1) * 8 + 3] = value;
    result.lse[5 * 2] = value;
    const ErrorReport error = report();
    EXPECT_FALSE(error.within(tolerance));
    EXPECT_TRUE(error.judgedWithin(tolerance)) << error.toString(tolerance);
    EXPECT_EQ(error.unjudged, 2);
    EXPECT_EQ(error.unjudgedQuery, 4);
    EXPECT_EQ(error.unjudgedHead, 1);
    EXPECT_NE(error.toString(tolerance).find("not finite there: 2, the first at row (4, 1)"), std::string::npos);
  }
  out[0] += 1;
  EXPECT_FALSE(report().judgedWithin(tolerance));
}

TEST_F(Metrics, ASubsetOfTheRowsIsCompared) {
  out[2 * 16] = std::numeric_limits<float>::quiet_NaN();
  lse[2 * 2] = std::numeric_limits<float>::quiet_NaN();
  attention.sequences = singleRows(attention.sequences, std::array<int64_t, 3>{0, 5, 3});
  EXPECT_TRUE(report().within(toleranceOf(DType::kF32)));
  out[5 * 16] += 1;
  EXPECT_FALSE(report().within(toleranceOf(DType::kF32)));
  EXPECT_EQ(report().worstQuery, 5);
}

TEST(CompareRows, TakesAnyNumberOfHeadsAndColumns) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.cmpBlock = 4, .cmpStride = 2};
  const DrawnLengths lengths = packedLengths({0, 0, 0}, {9, 3, 6}, spec); // N_c 3, 0, 2
  const OwnedTensor kComp = drawTensor(random, DType::kBf16, 1, 5, 3, 7);
  const std::vector<Sequence> rows = compressedRows(lengths.sequences, spec);
  std::vector<double> expected = readRows(rows, kComp.view(), 3, 7);
  ASSERT_EQ(expected.size(), 5u * 3 * 7);
  EXPECT_EQ(compareRows(rows, 3, 7, expected, kComp.view()).relativeRms, 0);
  double squares = 0;
  for (const double value : expected)
    squares += value * value;
  expected[(4 * 3 + 2) * 7 + 6] += 0.5;
  const ErrorReport error = compareRows(rows, 3, 7, expected, kComp.view());
  EXPECT_NEAR(error.relativeRms, 0.5 / std::sqrt(squares), 0.1 * error.relativeRms);
  EXPECT_EQ(error.worstQuery, 4);
  EXPECT_EQ(error.worstHead, 2);
}

// A row of a gradient that cancels is compared with a share of its terms, and the tensor with its own norm, unless the
// tensor cancels as a whole.
TEST(CompareRows, OnlyATensorThatCancelsIsComparedWithItsTerms) {
  std::mt19937_64 random(test::freshSeed());
  const DrawnLengths lengths = packedLengths({4}, {4}, {});
  OwnedTensor gradient = drawTensor(random, DType::kF32, 1, 4, 1, 3);
  // The last row is small, and its terms have the norm 100.
  for (const int64_t column : {0, 1, 2})
    storeElement(DType::kF32, gradient.bytes.data(), 9 + column, 0.125);
  const std::vector<double> got = readRows(lengths.sequences, gradient.view(), 1, 3);
  std::vector<double> expected = got, terms = {0, 0, 0, 10000};
  expected[11] += 0.5;
  const auto reportOf = [&](const std::vector<double> &reference) {
    return compareRows(lengths.sequences, 1, 3, reference, gradient.view(), GradientRows{.terms = terms});
  };
  double squares = 0;
  for (const double value : expected)
    squares += value * value;
  EXPECT_NEAR(reportOf(expected).relativeRms, 0.5 / std::max(std::sqrt(squares), 2.0), 1e-6);
  terms[3] = 1e8;
  EXPECT_NEAR(reportOf(expected).relativeRms, 0.5 / 200, 1e-6);
  EXPECT_NEAR(reportOf(expected).worstRow, 0.5 / 200, 1e-6);
}

} // namespace
} // namespace nsa::reference
