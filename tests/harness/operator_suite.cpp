// Every operator of the forward pass against the fp64 reference, output by output. For every device.
#include "tests/harness/operator_case.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"
#include "tools/support/operator_check.h"

namespace nsa::test {
namespace {

using tools::NamedTensors;

class OperatorTest : public AttentionTest {
protected:
  Result<NamedTensors> run(const tools::OperatorInputs &inputs) {
    Result<tools::PlanHandle> plan =
        tools::createPlan(session->engine(), inputs.spec, inputs.maxima, session->accelerator().stream());
    if (!plan)
      return plan.status();
    description = tools::describePlan(plan->get());
    Result<tools::RunResult> result =
        tools::runOnce(session->accelerator(), plan->get(), inputs, tools::allOutputs(inputs.spec.op));
    if (!result)
      return result.status();
    return std::move(result->outputs);
  }

  void check(const OperatorCase &shape, std::mt19937_64 &random) {
    SCOPED_TRACE(shape.text());
    const tools::OperatorInputs inputs = tools::drawInputs(shape.spec, shape.lengths, random());
    const Result<NamedTensors> outputs = run(inputs);
    ASSERT_TRUE(outputs.isOk()) << outputs.status().toString();
    SCOPED_TRACE(description.dump(2));
    EXPECT_TRUE(description["fallbacks"].empty()) << "something that should have served did not";
    for (const nlohmann::json &launch : description["launches"])
      EXPECT_EQ(launch.value("target", "") == "cpu", !session->isCuda());
    const tools::OperatorCheck checked = tools::checkOperator(inputs, *outputs);
    EXPECT_TRUE(checked.within()) << checked.toString();
  }

  nlohmann::json description;
};

class OperatorTable : public OperatorTest, public ::testing::WithParamInterface<OperatorCase> {};

TEST_P(OperatorTable, MatchesTheReference) {
  std::mt19937_64 random(freshSeed());
  check(GetParam(), random);
}

INSTANTIATE_TEST_SUITE_P(Table, OperatorTable, ::testing::ValuesIn(operatorTable()),
                         [](const auto &info) { return info.param.name; });

class DrawnOperators : public OperatorTest, public ::testing::WithParamInterface<Operator> {};

TEST_P(DrawnOperators, MatchTheReference) {
  std::mt19937_64 random(freshSeed());
  const OperatorDrawLimits limits =
      session->isCuda() ? OperatorDrawLimits{.maxTokens = maxTokens(2048), .maxWork = 1e9} : OperatorDrawLimits{};
  const int cases = session->isCuda() ? 20 : 8;
  for (int i = 0; i < cases && !HasFailure(); ++i)
    check(drawOperatorCase(GetParam(), random, limits), random);
}

INSTANTIATE_TEST_SUITE_P(Drawn, DrawnOperators,
                         ::testing::Values(Operator::kCompress, Operator::kCmp, Operator::kSelect, Operator::kSel,
                                           Operator::kCombine, Operator::kNsa),
                         [](const auto &info) { return std::string(operatorName(info.param)); });

} // namespace
} // namespace nsa::test
