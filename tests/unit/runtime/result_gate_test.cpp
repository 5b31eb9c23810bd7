// The gate that candidates pass before they are measured: right results pass, each kind of wrong one does not.
#include "runtime/engine/result_gate.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace nsa;

namespace {

TuningResult sample() {
  TuningResult result;
  result.outputs = {{"out", TuningResult::Kind::kRows, 8, {}}, {"lse", TuningResult::Kind::kLse, 1, {}}};
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column)
      result.outputs[0].values.push_back(std::sin(static_cast<float>(row * 8 + column)) + 1.5f);
    result.outputs[1].values.push_back(static_cast<float>(row) * 0.25f);
  }
  return result;
}

std::vector<float> &outOf(TuningResult &result) { return result.outputs[0].values; }
std::vector<float> &lseOf(TuningResult &result) { return result.outputs[1].values; }

// Lists of four blocks for so many queries.
TuningResult lists(size_t queries) {
  TuningResult result;
  result.outputs = {{"block_list", TuningResult::Kind::kLists, 4, {}}};
  for (size_t i = 0; i < queries; ++i)
    result.outputs[0].values.insert(result.outputs[0].values.end(), {0, 3, static_cast<float>(4 + i), -1});
  return result;
}

TEST(ResultGate, FewListsMayDifferAndManyMayNot) {
  const TuningResult reference = lists(1000);
  TuningResult near = reference;
  for (size_t query = 0; query < 5; ++query)
    near.outputs[0].values[query * 4 + 1] = 2;
  EXPECT_TRUE(compareResults(reference, near, DType::kBf16).isOk());
  TuningResult far = reference;
  for (size_t query = 0; query < 20; ++query)
    far.outputs[0].values[query * 4 + 3] = 99;
  const Status status = compareResults(reference, far, DType::kBf16);
  EXPECT_NE(status.toString().find("block_list"), std::string::npos);
  EXPECT_NE(status.toString().find("row 19"), std::string::npos);
}

TEST(ResultGate, EqualAndNearlyEqualPass) {
  TuningResult reference = sample();
  EXPECT_TRUE(compareResults(reference, reference, DType::kF32).isOk());
  TuningResult near = sample();
  for (float &value : outOf(near))
    value *= 1.001f;
  EXPECT_TRUE(compareResults(reference, near, DType::kBf16).isOk());
  EXPECT_FALSE(compareResults(reference, near, DType::kF32).isOk()) << "1e-3 is far beyond fp32";
}

TEST(ResultGate, NanAndUnwrittenElementsFail) {
  TuningResult reference = sample();
  TuningResult nanOut = sample();
  outOf(nanOut)[77] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(compareResults(reference, nanOut, DType::kBf16).toString().find("77"), std::string::npos);
  TuningResult nanLse = sample();
  lseOf(nanLse)[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(compareResults(reference, nanLse, DType::kBf16).isOk());
  // A NaN in both is no agreement.
  EXPECT_FALSE(compareResults(nanOut, nanOut, DType::kBf16).isOk());
}

TEST(ResultGate, OneBadRowFailsThoughTheMeanIsFine) {
  TuningResult reference = sample();
  TuningResult bad = sample();
  for (size_t column = 0; column < 8; ++column)
    outOf(bad)[5 * 8 + column] *= 1.03f;
  EXPECT_NE(compareResults(reference, bad, DType::kBf16).toString().find("row 5"), std::string::npos);
}

TEST(ResultGate, InfinitiesMustAgree) {
  TuningResult reference = sample();
  lseOf(reference)[0] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compareResults(reference, reference, DType::kBf16).isOk());
  EXPECT_FALSE(compareResults(reference, sample(), DType::kBf16).isOk());
  EXPECT_FALSE(compareResults(sample(), reference, DType::kBf16).isOk());
  TuningResult infinite = sample();
  outOf(infinite)[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(compareResults(sample(), infinite, DType::kBf16).isOk());
}

TEST(ResultGate, LseInAnotherBaseFails) {
  TuningResult reference = sample();
  TuningResult other = sample();
  for (float &value : lseOf(other))
    value *= 1.442695f;
  EXPECT_NE(compareResults(reference, other, DType::kBf16).toString().find("lse"), std::string::npos);
}

TEST(ResultGate, RowsOfZeroMustBeMet) {
  TuningResult reference = sample();
  std::fill_n(outOf(reference).begin(), 8, 0.0f);
  TuningResult other = reference;
  outOf(other)[0] = 1e-6f;
  EXPECT_FALSE(compareResults(reference, other, DType::kBf16).isOk());
}

} // namespace
