// Scores in the thousands in decode, whose parts are put together from several programs in each branch; and logits of
// its gates. For every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/large_scores.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

namespace nsa::test {
namespace {

// Several programs share the keys of a query in each branch, and their parts lie apart.
class DecodeLarge : public DecodeTest, public ::testing::WithParamInterface<DType> {
protected:
  static constexpr int64_t kTokens = 230, kBatch = 2, kNew = 5;

  static OperatorInputs history(Gate gate) {
    Spec spec = smallSpec(GetParam());
    spec.cmpBlock = 8;
    spec.cmpStride = 4;
    spec.selCount = 8;
    spec.window = 128;
    spec.gate = gate;
    return tools::drawInputs(spec, {{kTokens, kTokens}, {kTokens, kTokens}}, freshSeed());
  }
  void feedAll(const OperatorInputs &inputs) {
    Spec spec = inputs.spec;
    spec.op = Operator::kDecode;
    const CacheShape cache = {.room = 608, .mostNew = kNew, .pageSize = 16, .seed = 5};
    for (const int64_t programs : KeySplits::make(spec, {kBatch, kBatch * kNew, kNew, cache.room}).counts)
      ASSERT_GT(programs, 1);
    feed(inputs, cache, evenly(kTokens, kNew));
  }
};
NSA_INSTANTIATE_PER_TYPE(DecodeLarge);

TEST_P(DecodeLarge, ScoresNeitherOverflowNorVanish) {
  OperatorInputs inputs = history(Gate::kValue);
  for (size_t levels = 0; levels < kLevels; ++levels) {
    SCOPED_TRACE(levels);
    setLargeScores(inputs, levels, inputs.spec.selBlock);
    ASSERT_NO_FATAL_FAILURE(feedAll(inputs));
    expectRightScores(inputs, collected);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(DecodeLarge, GateLogitsNeitherOverflowNorVanish) {
  for (const Gate gate : {Gate::kSoftmax, Gate::kSigmoid}) {
    SCOPED_TRACE(gateName(gate));
    OperatorInputs inputs = history(gate);
    setLargeLogits(inputs);
    ASSERT_NO_FATAL_FAILURE(feedAll(inputs));
    const tools::OperatorCheck checked = tools::checkOperator(inputs, collected);
    EXPECT_TRUE(checked.within()) << checked.toString();
  }
}

} // namespace
} // namespace nsa::test
