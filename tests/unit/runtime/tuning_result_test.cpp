// The gate that candidates pass before they are measured: right results pass, each kind of wrong one does not.
#include "runtime/cpu/cpu_device.h"
#include "runtime/engine/tune/tuning_result.h"

#include <algorithm>
#include <array>
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

// Lists of four places for so many queries, the first of which sees three blocks and each other one more.
TuningResult lists(size_t queries) {
  TuningResult result;
  result.outputs = {{"block_list", TuningResult::Kind::kLists, 4, {}}};
  for (size_t i = 0; i < queries; ++i) {
    const auto own = static_cast<float>(i + 2);
    if (i == 0)
      result.outputs[0].values = {0, 1, 2, -1};
    else
      result.outputs[0].values.insert(result.outputs[0].values.end(), {0, 1, own - 1, own});
    result.outputs[0].ownBlocks.push_back(static_cast<int64_t>(own));
  }
  return result;
}

// Another one of the blocks that the query sees, as a near tie may choose it.
void chooseAnother(TuningResult &result, size_t query) { result.outputs[0].values[query * 4 + 1] = 2; }

TEST(ResultGate, OneListOfAThousandMayDifferAndMoreMayNot) {
  const TuningResult reference = lists(1000);
  TuningResult near = reference;
  chooseAnother(near, 700);
  EXPECT_TRUE(compareResults(reference, near, DType::kBf16).isOk());
  chooseAnother(near, 900);
  const std::string said = compareResults(reference, near, DType::kBf16).toString();
  EXPECT_NE(said.find("block_list"), std::string::npos) << said;
  EXPECT_NE(said.find("row 900"), std::string::npos) << said;
}

// One row of ten thousand, which might differ: what is no list at all passes nowhere, in a reference neither.
TEST(ResultGate, WhatIsNoListFailsHoweverRare) {
  const TuningResult reference = lists(10000);
  ASSERT_TRUE(compareResults(reference, reference, DType::kBf16).isOk());
  const struct {
    const char *what;
    size_t row;
    std::array<float, 4> list;
  } wrong[] = {{"not written", 500, {-2, -2, -2, -2}},      {"last place not written", 500, {0, 1, 501, -2}},
               {"descending", 500, {502, 501, 1, 0}},       {"twice the same", 500, {0, 1, 1, 502}},
               {"behind the query", 500, {0, 1, 501, 503}}, {"one too few", 500, {0, 1, 502, -1}},
               {"a hole", 500, {0, -1, 501, 502}},          {"one too many", 0, {0, 1, 2, 3}},
               {"nothing for the tail", 0, {0, 1, 2, -2}},  {"below every block", 500, {-1, 1, 501, 502}}};
  for (const auto &[what, row, list] : wrong) {
    TuningResult result = reference;
    std::ranges::copy(list, result.outputs[0].values.begin() + static_cast<ptrdiff_t>(row * 4));
    const std::string said = compareResults(reference, result, DType::kBf16).toString();
    EXPECT_NE(said.find("in row " + std::to_string(row)), std::string::npos) << what << ": " << said;
    EXPECT_FALSE(compareResults(result, result, DType::kBf16).isOk()) << what;
  }
}

TEST(ResultGate, CountsAreExact) {
  TuningResult reference;
  reference.outputs = {{"reads", TuningResult::Kind::kCounts, 2, std::vector<float>(20000, 1123)}};
  EXPECT_TRUE(compareResults(reference, reference, DType::kBf16).isOk());
  TuningResult other = reference;
  other.outputs[0].values[777] += 1;
  const std::string said = compareResults(reference, other, DType::kBf16).toString();
  EXPECT_NE(said.find("reads holds 1124 in row 388 at 1"), std::string::npos) << said;
  reference.outputs[0].values[777] = -2; // as poisoned: it was not written
  EXPECT_FALSE(compareResults(reference, reference, DType::kBf16).isOk());
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

// An output is copied in pieces, of which the last one is short.
TEST(ComparedOutput, IsWholeInEachType) {
  Result<std::unique_ptr<Device>> device = cpu::CpuDevice::open(1, "");
  ASSERT_TRUE(device) << device.status().toString();
  constexpr size_t kElements = (size_t{1} << 21) + 5;
  struct Case {
    DType dtype;
    std::vector<uint8_t> seven;
  };
  for (const Case &each : {Case{DType::kBf16, {0xe0, 0x40}}, Case{DType::kF16, {0x00, 0x47}},
                           Case{DType::kF32, {0, 0, 0xe0, 0x40}}, Case{DType::kI32, {7, 0, 0, 0}}}) {
    SCOPED_TRACE(std::string(dtypeName(each.dtype)));
    const size_t width = each.seven.size();
    std::vector<uint8_t> memory((kElements + 1) * width, 1);
    const ComparedOutput output{"y", TuningResult::Kind::kRows, 1, kElements, memory.data(), each.dtype};
    ASSERT_TRUE(output.poison(**device).isOk());
    Result<TuningResult::Output> read = output.read(**device);
    ASSERT_TRUE(read);
    ASSERT_EQ(read->values.size(), kElements);
    EXPECT_TRUE(std::ranges::all_of(
        read->values, [&](float value) { return each.dtype == DType::kI32 ? value == -2 : std::isnan(value); }));
    EXPECT_EQ(memory[kElements * width], 1) << "what lies behind it";
    for (size_t i = 0; i < kElements; ++i)
      std::ranges::copy(each.seven, memory.begin() + static_cast<ptrdiff_t>(i * width));
    read = output.read(**device);
    ASSERT_TRUE(read);
    EXPECT_TRUE(std::ranges::all_of(read->values, [](float value) { return value == 7; }));
  }
}

} // namespace
