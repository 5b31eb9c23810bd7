// Every operator against the fp64 reference, and values that can be told without it. For every device.
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

std::vector<AttentionCase> servedAttention() {
  return servedCases(attentionTable(), [](const AttentionCase &shape) { return shape.spec(); });
}

class AttentionTable : public AttentionTest, public ::testing::WithParamInterface<AttentionCase> {
protected:
  static void SetUpTestSuite() {
    makeReadyForSuite(servedAttention(),
                      [](const AttentionCase &shape) { return std::pair(shape.spec(), shape.maxima()); });
  }
};

TEST_P(AttentionTable, MatchesTheReference) {
  std::mt19937_64 random(freshSeed());
  AttentionData data = AttentionData::draw(GetParam(), random);
  check(data);
}

INSTANTIATE_TEST_SUITE_P(Table, AttentionTable, ::testing::ValuesIn(servedAttention()),
                         [](const auto &info) { return info.param.name; });

AttentionCase drawServed(std::mt19937_64 &random, const DrawLimits &limits) {
  for (;;)
    if (AttentionCase drawn = drawAttentionCase(random, limits); isServed(drawn.spec()))
      return drawn;
}

class DrawnAttention : public AttentionTest, public ::testing::WithParamInterface<std::string> {
protected:
  // Makes all kernels at once, then runs one case after the other.
  void checkDrawn(int count, const DrawLimits &limits) {
    std::mt19937_64 random(freshSeed());
    std::vector<AttentionCase> cases;
    std::vector<std::pair<Spec, Maxima>> plans;
    for (int i = 0; i < drawnCases(count); ++i) {
      cases.push_back(drawServed(random, limits));
      plans.emplace_back(cases.back().spec(), cases.back().maxima());
    }
    session->makeReady(plans);
    for (const AttentionCase &drawn : cases) {
      AttentionData data = AttentionData::draw(drawn, random);
      check(data);
      ASSERT_FALSE(HasFailure());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Variants, DrawnAttention, ::testing::ValuesIn(testedVariants()),
                         [](const auto &info) { return info.param; });

TEST_P(DrawnAttention, MatchesTheReference) {
  useVariant(GetParam());
  // A GPU machine has the cores for longer references.
  if (!session->isCuda())
    checkDrawn(32, {});
  else if (GetParam() == "row_attention")
    checkDrawn(24, {.maxTokens = maxTokens(600), .maxPairWork = 5e8});
  else
    checkDrawn(24, {.maxTokens = maxTokens(4096), .maxPairWork = 2e9});
}

// A row's running sums are rescaled with each tile of keys. A rescaling that is off by a rounding, although the maximum
// stays, would tilt the weights of thousands of tiles by thousands of roundings.
TEST_P(DrawnAttention, ARowOfManyTilesForgetsNothing) {
  useVariant(GetParam());
  const int64_t keys = maxTokens(65536), queries = 16;
  AttentionCase shape{.name = "many_tiles",
                      .op = Operator::kDense,
                      .dtype = servedTypes().back(),
                      .kvHeads = 1,
                      .group = servedGroup(2),
                      .qkDim = 64,
                      .vDim = 64,
                      .sequences = {{std::min(queries, keys), keys}}};
  shape.scale = 1; // maxima about 30
  std::mt19937_64 random(freshSeed());
  AttentionData data = AttentionData::draw(shape, random);
  check(data);
}

TEST_F(AttentionTest, AWindowOfOneIsTheOwnValue) {
  // One token too wide would mix in the one before.
  std::mt19937_64 random(freshSeed());
  for (DType dtype : servedTypes()) {
    AttentionCase shape{.name = "window_one",
                        .op = Operator::kWindow,
                        .dtype = dtype,
                        .kvHeads = 2,
                        .group = 2,
                        .qkDim = 24,
                        .vDim = 24,
                        .window = 1,
                        .sequences = {{66, 80}}};
    AttentionData data = AttentionData::draw(shape, random);
    check(data);
    for (int64_t query = 0; query < 66; ++query)
      for (int64_t head = 0; head < 4; ++head)
        for (int64_t column = 0; column < 24; ++column)
          // The one weight is divided by itself: at most a rounding away from one.
          ASSERT_NEAR(data.out.get(0, query, head, column), data.v.get(0, 14 + query, head / 2, column),
                      1e-6 * std::fabs(data.v.get(0, 14 + query, head / 2, column)))
              << "query " << query;
  }
}

TEST_F(AttentionTest, AWindowOfTheWholeSequenceIsDense) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "wide_window",
                      .op = Operator::kWindow,
                      .dtype = servedTypes().back(),
                      .kvHeads = 1,
                      .group = servedGroup(3),
                      .qkDim = 32,
                      .vDim = 32,
                      .window = 97,
                      .sequences = {{60, 97}}};
  AttentionData windowed = AttentionData::draw(shape, random);
  check(windowed);
  AttentionData dense = windowed;
  dense.shape.op = Operator::kDense;
  check(dense);
  AttentionData enormous = windowed;
  enormous.shape.window = std::numeric_limits<int32_t>::max();
  check(enormous);
}

TEST_F(AttentionTest, TheLseIsTheNaturalLogarithm) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "natural_lse",
                      .op = Operator::kDense,
                      .dtype = servedTypes().back(),
                      .kvHeads = 1,
                      .group = 1,
                      .qkDim = 8,
                      .vDim = 8,
                      .sequences = {{50, 50}}};
  AttentionData data = AttentionData::draw(shape, random);
  for (int64_t query = 0; query < 50; ++query)
    data.q.fillRow(0, query, 0, 0.0f); // equal scores: the sum counts the keys
  check(data);
  for (int64_t query = 0; query < 50; ++query)
    EXPECT_NEAR(data.lse.get(0, query, 0, 0), std::log(query + 1.0), 1e-5);
}

TEST_F(AttentionTest, TheDefaultScaleComesFromTheQueryHeadSize) {
  std::mt19937_64 random(freshSeed());
  AttentionCase shape{.name = "scale_default",
                      .op = Operator::kDense,
                      .dtype = servedTypes().back(),
                      .kvHeads = 1,
                      .group = 1,
                      .qkDim = 16,
                      .vDim = 64,
                      .sequences = {{40, 40}}};
  AttentionData data = AttentionData::draw(shape, random);
  check(data);
  AttentionData same = data;
  same.shape.scale = 0.25f; // 1/sqrt(16)
  check(same);
  EXPECT_EQ(data.out.bytes(), same.out.bytes());
}

TEST_F(AttentionTest, RepeatsGiveTheSameBits) {
  std::mt19937_64 random(freshSeed());
  for (DType dtype : {servedTypes().front(), servedTypes().back()}) {
    const int64_t tokens = session->isCuda() ? maxTokens(1500) : 200;
    AttentionCase shape{.name = "repeats",
                        .op = Operator::kDense,
                        .dtype = dtype,
                        .kvHeads = 2,
                        .group = 4,
                        .qkDim = 64,
                        .vDim = 64,
                        .sequences = {{tokens, tokens}}};
    AttentionData data = AttentionData::draw(shape, random);
    check(data);
    const std::vector<std::byte> out = data.out.bytes(), lse = data.lse.bytes();
    Result<Launch> launch = session->prepare(data);
    ASSERT_TRUE(launch) << launch.status().toString();
    for (int repeat = 0; repeat < 100; ++repeat) {
      data.out.poison();
      data.lse.poison();
      ASSERT_TRUE(launch->upload(data).isOk());
      ASSERT_TRUE(launch->runInto(data).isOk());
      ASSERT_EQ(data.out.bytes(), out) << "repeat " << repeat;
      ASSERT_EQ(data.lse.bytes(), lse) << "repeat " << repeat;
    }
  }
}

} // namespace
} // namespace nsa::test
