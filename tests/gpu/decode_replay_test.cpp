// A captured step of decode, replayed while the sequence grows from nothing to the greatest length of the plan.
#include "runtime/base/key_splits.h"
#include "runtime/cuda/context.h"
#include "tests/gpu/graph_api.h"
#include "tests/harness/attention_case.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

namespace nsa::test {
namespace {

class DecodeReplay : public DecodeTest {
protected:
  // Captures a step for the most new tokens of the plan, and replays it until the whole history is in the cache. The
  // history has a multiple of so many tokens.
  void replayAll(const OperatorInputs &history, const CacheShape &shape) {
    Result<const cuda::Driver *> driver = cuda::Driver::get();
    ASSERT_TRUE(driver.isOk());
    cuda::PrimaryContext context(**driver, 0);
    ASSERT_TRUE(context.retain().isOk());
    const cuda::ContextScope scope(context);
    ASSERT_TRUE(scope.status().isOk());
    const GraphApi api = GraphApi::open();
    const auto stream = static_cast<cuda::Stream>(session->accelerator().stream());

    Result<DecodeRun> run =
        DecodeRun::open(session->accelerator(), history, shape, tools::allOutputs(Operator::kDecode));
    ASSERT_TRUE(run.isOk()) << run.status().toString();
    Result<tools::PlanHandle> plan = tools::createPlan(session->engine(), run->spec(), run->maxima(), stream);
    ASSERT_TRUE(plan.isOk()) << plan.status().toString();
    description = tools::describePlan(plan->get());
    ASSERT_EQ(description["launches"].size(), 1u) << description.dump(2);
    EXPECT_EQ(description["launches"][0].value("operator", ""), kStepTemplate);
    ASSERT_TRUE(run->allocateWorkspace(plan->get()).isOk());

    const int64_t tokens = history.extents.timeQ;
    GraphExec exec = nullptr;
    ASSERT_EQ(tokens % shape.mostNew, 0);
    for (int64_t token = 0; token < tokens; token += shape.mostNew) {
      const Status fed = run->feed(std::vector<int64_t>(static_cast<size_t>(history.extents.batch), shape.mostNew));
      ASSERT_TRUE(fed.isOk()) << fed.toString();
      if (!exec) {
        ASSERT_EQ(api.beginCapture(stream, GraphApi::kCaptureGlobal), cuda::kSuccess);
        const Status captured = run->enqueue(plan->get());
        Graph graph = nullptr;
        ASSERT_EQ(api.endCapture(stream, &graph), cuda::kSuccess);
        ASSERT_TRUE(captured.isOk()) << captured.toString();
        ASSERT_EQ(api.instantiate(&exec, graph, 0), cuda::kSuccess);
        api.destroyGraph(graph);
      }
      ASSERT_EQ(api.launch(exec, stream), cuda::kSuccess);
      const Status collectedRows = run->collect();
      ASSERT_TRUE(collectedRows.isOk()) << "token " << token << ": " << collectedRows.toString();
    }
    api.destroyExec(exec);
    Result<NamedTensors> outputs = run->collected();
    ASSERT_TRUE(outputs.isOk()) << outputs.status().toString();
    const tools::OperatorCheck checked = tools::checkOperator(history, *outputs);
    EXPECT_TRUE(checked.within()) << checked.toString();
  }
};

Spec smallHeads() {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = DType::kBf16;
  spec.queryHeads = 2;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  return spec;
}

TEST_F(DecodeReplay, OfOneGraphOverTenThousandLengthsAreTheForward) {
  const int64_t tokens = maxTokens(10000);
  const OperatorInputs history = tools::drawInputs(smallHeads(), {{tokens}, {tokens}}, freshSeed());
  for (const int32_t page : {0, 64}) {
    SCOPED_TRACE(page ? "paged" : "contiguous");
    ASSERT_NO_FATAL_FAILURE(replayAll(history, {.room = tokens, .pageSize = page, .seed = freshSeed()}));
  }
}

TEST_F(DecodeReplay, OfSeveralTokensAreTheForward) {
  const int64_t most = kStepTokens, tokens = maxTokens(2000) / most * most;
  const OperatorInputs history = tools::drawInputs(smallHeads(), {{tokens}, {tokens}}, freshSeed());
  ASSERT_NO_FATAL_FAILURE(replayAll(history, {.room = tokens, .mostNew = most, .pageSize = 64, .seed = freshSeed()}));
}

} // namespace
} // namespace nsa::test
