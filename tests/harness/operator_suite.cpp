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

TEST_F(OperatorTest, ATimedRunTellsItsParts) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.queryHeads = 128;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  spec.window = 100;
  const tools::OperatorInputs inputs = tools::drawInputs(spec, {{1200}, {1200}}, 1);
  Result<tools::PlanHandle> plan =
      tools::createPlan(session->engine(), spec, inputs.maxima, session->accelerator().stream());
  ASSERT_TRUE(plan.isOk()) << plan.status().toString();
  Result<tools::DeviceOperator> job = tools::DeviceOperator::upload(session->accelerator(), inputs, {});
  ASSERT_TRUE(job.isOk()) << job.status().toString();
  ASSERT_TRUE(job->allocateWorkspace(plan->get()).isOk());
  Result<std::vector<nsa_part_time>> parts = Status::error(ErrorCode::kInternal, "not run");
  const Result<double> wall = session->accelerator().time([&] {
    parts = job->runTimed(plan->get());
    return parts.status();
  });
  ASSERT_TRUE(wall.isOk()) << wall.status().toString();
  const char *const names[] = {"compress", "cmp", "select", "sel", "win", "combine"};
  ASSERT_EQ(parts->size(), std::size(names));
  double sum = 0;
  for (size_t i = 0; i < parts->size(); ++i) {
    EXPECT_STREQ((*parts)[i].name, names[i]);
    // On the CPU the queries go through in chunks; compression does not see queries.
    EXPECT_EQ((*parts)[i].launches, session->isCuda() || i == 0 ? 1 : 2);
    EXPECT_GT((*parts)[i].milliseconds, 0);
    sum += (*parts)[i].milliseconds;
  }
  EXPECT_LE(sum, *wall);
  EXPECT_GE(sum, 0.9 * *wall - 1) << "time that no part accounts for";
}

class DrawnOperators : public OperatorTest, public ::testing::WithParamInterface<Operator> {};

TEST_P(DrawnOperators, MatchTheReference) {
  std::mt19937_64 random(freshSeed());
  const OperatorDrawLimits limits =
      session->isCuda() ? OperatorDrawLimits{.maxTokens = maxTokens(2048), .maxWork = 1e9} : OperatorDrawLimits{};
  const int cases = drawnCases(session->isCuda() ? 20 : 8);
  for (int i = 0; i < cases && !HasFailure(); ++i)
    check(drawOperatorCase(GetParam(), random, limits), random);
}

INSTANTIATE_TEST_SUITE_P(Drawn, DrawnOperators,
                         ::testing::Values(Operator::kCompress, Operator::kCmp, Operator::kSelect, Operator::kSel,
                                           Operator::kCombine, Operator::kNsa),
                         [](const auto &info) { return std::string(operatorName(info.param)); });

} // namespace
} // namespace nsa::test
