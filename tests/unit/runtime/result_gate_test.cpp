// The gate that candidates pass before they are measured: right results pass, each kind of wrong one does not.
#include "runtime/engine/result_gate.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace nsa;

namespace {

TuningResult sample() {
  TuningResult result;
  result.rowElements = 8;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column)
      result.out.push_back(std::sin(static_cast<float>(row * 8 + column)) + 1.5f);
    result.lse.push_back(static_cast<float>(row) * 0.25f);
  }
  return result;
}

TEST(ResultGate, EqualAndNearlyEqualPass) {
  TuningResult reference = sample();
  EXPECT_TRUE(compareResults(reference, reference, DType::kF32).isOk());
  TuningResult near = sample();
  for (float &value : near.out)
    value *= 1.001f;
  EXPECT_TRUE(compareResults(reference, near, DType::kBf16).isOk());
  EXPECT_FALSE(compareResults(reference, near, DType::kF32).isOk()) << "1e-3 is far beyond fp32";
}

TEST(ResultGate, NanAndUnwrittenElementsFail) {
  TuningResult reference = sample();
  TuningResult nanOut = sample();
  nanOut.out[77] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(compareResults(reference, nanOut, DType::kBf16).toString().find("77"), std::string::npos);
  TuningResult nanLse = sample();
  nanLse.lse[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(compareResults(reference, nanLse, DType::kBf16).isOk());
  // A NaN in both is no agreement.
  EXPECT_FALSE(compareResults(nanOut, nanOut, DType::kBf16).isOk());
}

TEST(ResultGate, OneBadRowFailsThoughTheMeanIsFine) {
  TuningResult reference = sample();
  TuningResult bad = sample();
  for (size_t column = 0; column < 8; ++column)
    bad.out[5 * 8 + column] *= 1.03f;
  EXPECT_NE(compareResults(reference, bad, DType::kBf16).toString().find("row 5"), std::string::npos);
}

TEST(ResultGate, InfinitiesMustAgree) {
  TuningResult reference = sample();
  reference.lse[0] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compareResults(reference, reference, DType::kBf16).isOk());
  EXPECT_FALSE(compareResults(reference, sample(), DType::kBf16).isOk());
  EXPECT_FALSE(compareResults(sample(), reference, DType::kBf16).isOk());
  TuningResult infinite = sample();
  infinite.out[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(compareResults(sample(), infinite, DType::kBf16).isOk());
}

TEST(ResultGate, LseInAnotherBaseFails) {
  TuningResult reference = sample();
  TuningResult other = sample();
  for (float &value : other.lse)
    value *= 1.442695f;
  EXPECT_NE(compareResults(reference, other, DType::kBf16).toString().find("lse"), std::string::npos);
}

TEST(ResultGate, RowsOfZeroMustBeMet) {
  TuningResult reference = sample();
  std::fill_n(reference.out.begin(), 8, 0.0f);
  TuningResult other = reference;
  other.out[0] = 1e-6f;
  EXPECT_FALSE(compareResults(reference, other, DType::kBf16).isOk());
}

} // namespace
