// Scores in the thousands in each operator that has a softmax: of scores, of the selection's normaliser, of gates'
// logits. For every device.
#include "tests/harness/large_scores.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"

namespace nsa::test {
namespace {

using LargeCase = std::tuple<Operator, DType>;

std::vector<LargeCase> largeCases() {
  std::vector<LargeCase> cases;
  for (const Operator op :
       {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSelect, Operator::kSel, Operator::kNsa})
    for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
      cases.emplace_back(op, dtype);
  return servedCases(std::move(cases),
                     [](const LargeCase &value) { return smallSpec(std::get<0>(value), std::get<1>(value)); });
}

class LargeScores : public OperatorTest, public ::testing::WithParamInterface<LargeCase> {};
INSTANTIATE_TEST_SUITE_P(All, LargeScores, ::testing::ValuesIn(largeCases()), [](const auto &info) {
  return std::string(operatorName(std::get<0>(info.param))) + "_" + std::string(dtypeName(std::get<1>(info.param)));
});

TEST_P(LargeScores, NeitherOverflowNorVanish) {
  const auto &[op, dtype] = GetParam();
  const Spec spec = smallSpec(op, dtype);
  OperatorInputs inputs = tools::drawInputs(spec, {{200}, {200}}, freshSeed());
  std::vector<std::string> variants = {session->variant()};
  if (session->isCuda() && session->variant() == kTileTemplate && hasVariants(op))
    variants.push_back("row_attention"); // a GPU template
  for (const std::string &variant : variants) {
    SCOPED_TRACE(variant);
    useVariant(variant);
    const tools::PlanHandle made = plan(spec, inputs.maxima);
    // A part is a block of those that are selected, or as wide as no tile.
    const bool compressed = op == Operator::kCmp || op == Operator::kSelect;
    for (size_t levels = 0; levels < kLevels; ++levels) {
      SCOPED_TRACE(levels);
      setLargeScores(inputs, levels, compressed ? 3 : spec.selBlock);
      expectRightScores(inputs, run(made, inputs));
      ASSERT_FALSE(HasFailure());
    }
  }
}

class LargeGateLogits : public OperatorTestPerType {};
NSA_INSTANTIATE_PER_TYPE(LargeGateLogits);

TEST_P(LargeGateLogits, NeitherOverflowNorVanish) {
  for (const Gate gate : {Gate::kSoftmax, Gate::kSigmoid}) {
    SCOPED_TRACE(gateName(gate));
    Spec spec = smallSpec(Operator::kCombine, dtype());
    spec.gate = gate;
    OperatorInputs inputs = tools::drawInputs(spec, {{50}, {50}}, freshSeed());
    setLargeLogits(inputs);
    checkOutputs(inputs, run(inputs));
  }
}

class SaturatedGateLogits : public OperatorTestPerType {};
NSA_INSTANTIATE_PER_TYPE(SaturatedGateLogits);

TEST_P(SaturatedGateLogits, LeaveTheDigitsOfTheirGradients) {
  for (const Operator op : {Operator::kCombineBwd, Operator::kNsaBwd})
    for (const Gate gate : {Gate::kSoftmax, Gate::kSigmoid}) {
      SCOPED_TRACE(std::string(operatorName(op)) + " " + std::string(gateName(gate)));
      Spec spec = smallSpec(op, dtype());
      spec.gate = gate;
      OperatorInputs inputs = tools::drawInputs(spec, {{50}, {50}}, freshSeed());
      setSaturatedLogits(inputs);
      checkOutputs(inputs, run(inputs));
    }
}

} // namespace
} // namespace nsa::test
