#include "tests/harness/decode_fixture.h"

#include "tools/support/operator_check.h"

#include <algorithm>
#include <numeric>

namespace nsa::test {

Spec smallSpec(DType dtype) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = dtype;
  spec.queryHeads = 4;
  spec.kvHeads = 2;
  spec.qkDim = 32;
  spec.vDim = 16;
  spec.window = 20;
  spec.cmpBlock = 16;
  spec.cmpStride = 8;
  spec.selBlock = 16;
  spec.selCount = 4;
  return spec;
}

void DecodeTest::feed(const OperatorInputs &history, const CacheShape &wanted, const NextCounts &nextWanted) {
  CacheShape shape = wanted;
  shape.mostNew = servedNew(history.spec, shape.mostNew);
  const NextCounts next = [&](const DecodeRun &run) {
    std::vector<int64_t> counts = nextWanted(run);
    for (int64_t &count : counts)
      count = servedNew(history.spec, count);
    const int64_t most = *std::ranges::max_element(counts);
    EXPECT_LE(most, shape.mostNew) << "the plan is for fewer new tokens";
    if (most > shape.mostNew)
      counts.assign(counts.size(), 0);
    return counts;
  };
  Result<DecodeRun> run = DecodeRun::open(session->accelerator(), history, shape, tools::allOutputs(Operator::kDecode));
  ASSERT_TRUE(run.isOk()) << run.status().toString();
  Result<tools::PlanHandle> plan =
      tools::createPlan(session->engine(), run->spec(), run->maxima(), session->accelerator().stream());
  ASSERT_TRUE(plan.isOk()) << plan.status().toString();
  description = tools::describePlan(plan->get());
  SCOPED_TRACE(description.dump(2));
  EXPECT_TRUE(description["fallbacks"].empty());
  for (const nlohmann::json &launch : description["launches"])
    EXPECT_EQ(launch.value("target", "") == "cpu", !session->isCuda());
  if (std::string_view(kTestTemplate) == kStepTemplate)
    EXPECT_EQ(description["launches"].back().value("operator", ""), kStepTemplate);
  ASSERT_TRUE(run->allocateWorkspace(plan->get()).isOk());
  for (std::vector<int64_t> counts = next(*run); std::reduce(counts.begin(), counts.end()) > 0; counts = next(*run)) {
    const Status status = run->step(plan->get(), counts);
    ASSERT_TRUE(status.isOk()) << status.toString();
  }
  Result<NamedTensors> outputs = run->collected();
  ASSERT_TRUE(outputs.isOk()) << outputs.status().toString();
  collected = std::move(*outputs);
}

void DecodeTest::decode(const OperatorInputs &history, const CacheShape &shape, const NextCounts &next) {
  ASSERT_NO_FATAL_FAILURE(feed(history, shape, next));
  SCOPED_TRACE(description.dump(2));
  const tools::OperatorCheck checked = tools::checkOperator(history, collected);
  EXPECT_TRUE(checked.within()) << checked.toString();
}

DecodeTest::NextCounts DecodeTest::evenly(int64_t tokens, int64_t most) {
  return [=](const DecodeRun &run) {
    const int64_t count = std::min(most, tokens - run.length(0));
    return std::vector(static_cast<size_t>(run.maxima().batch), count);
  };
}

} // namespace nsa::test
