// A captured step of decode, replayed while the sequence grows from nothing to the greatest length of the plan.
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
  // Captures a step for one new token, and replays it for each token of the history.
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
    for (int64_t token = 0; token < tokens; ++token) {
      const Status fed = run->feed(std::vector<int64_t>(static_cast<size_t>(history.extents.batch), 1));
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

TEST_F(DecodeReplay, OfOneGraphOverTenThousandLengthsAreTheForward) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = DType::kBf16;
  spec.queryHeads = 2;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 64;
  const int64_t tokens = maxTokens(10000);
  const OperatorInputs history = tools::drawInputs(spec, {{tokens}, {tokens}}, freshSeed());
  for (const int32_t page : {0, 64}) {
    SCOPED_TRACE(page ? "paged" : "contiguous");
    ASSERT_NO_FATAL_FAILURE(replayAll(history, {.room = tokens, .pageSize = page, .seed = freshSeed()}));
  }
}

} // namespace
} // namespace nsa::test
