// The reference against the mask brute force, against results known by hand, and the metrics against
// their own traps (a NaN that compares false, a zero row).
#include "tests/harness/seed.h"
#include "tests/reference/attention.h"
#include "tests/reference/brute_force.h"
#include "tests/reference/elements.h"
#include "tests/reference/error_metrics.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace nsa::reference {
namespace {

// Buffers behind an Attention: batch, time, head, column, contiguous.
struct Inputs {
  std::vector<std::byte> q, k, v;
  Attention attention;
};

std::vector<std::byte> draw(std::mt19937_64 &random, DType dtype, int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<std::byte> data(count * (dtype == DType::kF32 ? 4 : 2));
  for (int64_t i = 0; i < count; ++i)
    storeElement(dtype, data.data(), i, normal(random));
  return data;
}

TensorView contiguous(const std::vector<std::byte> &data, DType dtype, int64_t times, int64_t heads, int64_t columns) {
  return {.data = data.data(),
          .dtype = dtype,
          .batchStride = times * heads * columns,
          .timeStride = heads * columns,
          .headStride = columns};
}

Inputs drawDense(std::mt19937_64 &random, DType dtype, int64_t batch, int64_t queries, int64_t keys, Attention shape) {
  Inputs inputs;
  inputs.q = draw(random, dtype, batch * queries * shape.queryHeads * shape.qkDim);
  inputs.k = draw(random, dtype, batch * keys * shape.kvHeads * shape.qkDim);
  inputs.v = draw(random, dtype, batch * keys * shape.kvHeads * shape.vDim);
  inputs.attention = std::move(shape);
  Attention &a = inputs.attention;
  a.q = contiguous(inputs.q, dtype, queries, a.queryHeads, a.qkDim);
  a.k = contiguous(inputs.k, dtype, keys, a.kvHeads, a.qkDim);
  a.v = contiguous(inputs.v, dtype, keys, a.kvHeads, a.vDim);
  a.sequences = denseSequences(batch, queries, keys);
  return inputs;
}

void expectSame(const AttentionResult &actual, const AttentionResult &expected) {
  ASSERT_EQ(actual.out.size(), expected.out.size());
  ASSERT_EQ(actual.lse.size(), expected.lse.size());
  for (size_t i = 0; i < actual.out.size(); ++i)
    ASSERT_NEAR(actual.out[i], expected.out[i], 1e-12) << "element " << i;
  for (size_t i = 0; i < actual.lse.size(); ++i)
    ASSERT_NEAR(actual.lse[i], expected.lse[i], 1e-12) << "row " << i;
}

TEST(Reference, EqualsTheMaskBruteForceOnDenseBatches) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 40; ++round) {
    const int64_t kvHeads = 1 + random() % 3, keys = random() % 40;
    const int64_t queries = keys ? random() % (keys + 1) : 0;
    const DType dtype = static_cast<DType>(random() % 3);
    Inputs inputs = drawDense(random, dtype, 1 + random() % 3, queries, keys,
                              {.op = random() % 2 ? Operator::kDense : Operator::kWindow,
                               .window = static_cast<int64_t>(1 + random() % 50),
                               .scale = random() % 2 ? 0.0 : 0.3,
                               .queryHeads = static_cast<int64_t>(kvHeads * (1 + random() % 4)),
                               .kvHeads = kvHeads,
                               .qkDim = static_cast<int64_t>(1 + random() % 9),
                               .vDim = static_cast<int64_t>(1 + random() % 9)});
    expectSame(attend(inputs.attention, 2), attendByMask(inputs.attention));
  }
}

TEST(Reference, EqualsTheMaskBruteForceOnPackedBatches) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 40; ++round) {
    std::vector<int32_t> cuQ = {0}, cuK = {0};
    for (int s = 0; s < 5; ++s) {
      const int32_t keys = random() % 3 ? random() % 20 : 0;
      cuK.push_back(cuK.back() + keys);
      cuQ.push_back(cuQ.back() + static_cast<int32_t>(random() % (keys + 1)));
    }
    Inputs inputs = drawDense(random, DType::kF32, 1, cuQ.back(), cuK.back(),
                              {.op = random() % 2 ? Operator::kDense : Operator::kWindow,
                               .window = static_cast<int64_t>(1 + random() % 12),
                               .queryHeads = 6,
                               .kvHeads = 2,
                               .qkDim = 5,
                               .vDim = 3});
    inputs.attention.sequences = packedSequences(cuQ, cuK);
    expectSame(attend(inputs.attention, 3), attendByMask(inputs.attention));
  }
}

TEST(Reference, WindowOneCopiesTheOwnValue) {
  std::mt19937_64 random(test::freshSeed());
  Inputs inputs =
      drawDense(random, DType::kF32, 1, 3, 5,
                {.op = Operator::kWindow, .window = 1, .queryHeads = 2, .kvHeads = 1, .qkDim = 4, .vDim = 2});
  const AttentionResult result = attend(inputs.attention);
  for (int64_t query = 0; query < 3; ++query) {
    for (int64_t head = 0; head < 2; ++head) {
      // Query i of 3 sits at position 5 - 3 + i.
      double score = 0;
      for (int64_t c = 0; c < 4; ++c)
        score += inputs.attention.q.at(0, query, head, c) * inputs.attention.k.at(0, 2 + query, 0, c);
      EXPECT_NEAR(result.lse[query * 2 + head], score / 2, 1e-12); // 1/sqrt(4)
      for (int64_t c = 0; c < 2; ++c)
        EXPECT_NEAR(result.out[(query * 2 + head) * 2 + c], inputs.attention.v.at(0, 2 + query, 0, c), 1e-12);
    }
  }
}

TEST(Reference, EqualScoresGiveTheMeanAndTheNaturalLogOfTheCount) {
  std::mt19937_64 random(test::freshSeed());
  Inputs inputs = drawDense(random, DType::kF32, 1, 4, 4,
                            {.op = Operator::kDense, .queryHeads = 1, .kvHeads = 1, .qkDim = 3, .vDim = 1});
  std::fill(inputs.q.begin(), inputs.q.end(), std::byte{0});
  const AttentionResult result = attend(inputs.attention);
  double sum = 0;
  for (int64_t position = 0; position < 4; ++position) {
    sum += inputs.attention.v.at(0, position, 0, 0);
    EXPECT_NEAR(result.out[position], sum / (position + 1), 1e-12);
    EXPECT_NEAR(result.lse[position], std::log(position + 1.0), 1e-12);
  }
}

struct Metrics : ::testing::Test {
  std::mt19937_64 random{test::freshSeed()};
  Inputs inputs = drawDense(random, DType::kF32, 1, 6, 6,
                            {.op = Operator::kDense, .queryHeads = 2, .kvHeads = 1, .qkDim = 4, .vDim = 8});
  AttentionResult result = attend(inputs.attention);
  std::vector<float> out{result.out.begin(), result.out.end()};
  std::vector<float> lse{result.lse.begin(), result.lse.end()};

  ErrorReport report() {
    const TensorView outView{
        .data = reinterpret_cast<const std::byte *>(out.data()), .timeStride = 16, .headStride = 8};
    const TensorView lseView{.data = reinterpret_cast<const std::byte *>(lse.data()), .timeStride = 2, .headStride = 1};
    return compare(inputs.attention, result, outView, lseView);
  }
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

} // namespace
} // namespace nsa::reference
