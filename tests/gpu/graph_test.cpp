// CUDA graphs: a run is captured and replayed, also with other lengths in device memory; a plan that is not in
// memory refuses to be made while a stream captures, and leaves the capture intact.
#include "runtime/cuda/context.h"
#include "tests/gpu/graph_api.h"
#include "tests/harness/seed.h"
#include "tests/harness/session.h"

#include <cmath>

namespace nsa::test {
namespace {

class GpuGraph : public AttentionTest {
protected:
  void SetUp() override {
    AttentionTest::SetUp();
    if (IsSkipped() || HasFatalFailure())
      return;
    driver = *cuda::Driver::get();
    context = std::make_unique<cuda::PrimaryContext>(*driver, 0);
    ASSERT_TRUE(context->retain().isOk());
    scope = std::make_unique<cuda::ContextScope>(*context);
    ASSERT_TRUE(scope->status().isOk());
    api = GraphApi::open();
    stream = static_cast<cuda::Stream>(session->accelerator().stream());
  }

  void expectMatch(AttentionData &data, Launch &launch) {
    ASSERT_TRUE(launch.finish().isOk());
    ASSERT_TRUE(launch.download(data).isOk());
    checkOutputs(data);
  }

  const cuda::Driver *driver = nullptr;
  std::unique_ptr<cuda::PrimaryContext> context;
  std::unique_ptr<cuda::ContextScope> scope;
  GraphApi api;
  cuda::Stream stream = nullptr;
};

TEST_F(GpuGraph, ACapturedRunReplaysOnNewContents) {
  std::mt19937_64 random(freshSeed());
  const AttentionCase shape{.name = "graph",
                            .op = Operator::kWindow,
                            .dtype = DType::kBf16,
                            .layout = Layout::kPacked,
                            .kvHeads = 2,
                            .group = 4,
                            .qkDim = 64,
                            .vDim = 64,
                            .window = 100,
                            .sequences = {{150, 150}, {0, 0}, {80, 200}}};
  AttentionData data = AttentionData::draw(shape, random);
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();

  ASSERT_EQ(api.beginCapture(stream, GraphApi::kCaptureGlobal), cuda::kSuccess);
  const Status captured = launch->enqueue();
  const Status asked = launch->finish();
  Graph graph = nullptr;
  ASSERT_EQ(api.endCapture(stream, &graph), cuda::kSuccess);
  ASSERT_TRUE(captured.isOk()) << captured.toString();
  EXPECT_EQ(asked.code(), ErrorCode::kCapturing) << asked.toString();
  GraphExec exec = nullptr;
  ASSERT_EQ(api.instantiate(&exec, graph, 0), cuda::kSuccess);
  EXPECT_TRUE(std::isnan(data.out.get(0, 0, 0, 0))) << "a captured run must not run yet";

  for (int replay = 0; replay < 3; ++replay) {
    // Other values and, within the maxima, other lengths; the graph knows only addresses.
    AttentionCase other = shape;
    if (replay)
      other.sequences = {{100, 120}, {40, 41}, {90, 189}};
    AttentionData fresh = AttentionData::draw(other, random);
    ASSERT_EQ(fresh.q.bytes().size(), data.q.bytes().size());
    ASSERT_EQ(fresh.k.bytes().size(), data.k.bytes().size());
    ASSERT_TRUE(launch->upload(fresh).isOk());
    ASSERT_EQ(api.launch(exec, stream), cuda::kSuccess);
    expectMatch(fresh, *launch);
  }
  api.destroyExec(exec);
  api.destroyGraph(graph);
}

TEST_F(GpuGraph, AColdPlanDuringCaptureIsAClearErrorAndTheCaptureSurvives) {
  std::mt19937_64 random(freshSeed());
  AttentionCase known{.name = "known",
                      .op = Operator::kDense,
                      .dtype = DType::kF16,
                      .kvHeads = 1,
                      .group = 2,
                      .qkDim = 48,
                      .vDim = 48,
                      .sequences = {{64, 64}}};
  AttentionData data = AttentionData::draw(known, random);
  Result<Launch> launch = session->prepare(data);
  ASSERT_TRUE(launch) << launch.status().toString();
  AttentionCase cold = known;
  cold.qkDim = 56; // no other test compiles this

  ASSERT_EQ(api.beginCapture(stream, GraphApi::kCaptureGlobal), cuda::kSuccess);
  const Result<tools::PlanHandle> refused = tools::createPlan(session->engine(), cold.spec(), cold.maxima(), stream);
  const Result<tools::PlanHandle> served = tools::createPlan(session->engine(), known.spec(), known.maxima(), stream);
  const Status captured = launch->enqueue();
  Graph graph = nullptr;
  ASSERT_EQ(api.endCapture(stream, &graph), cuda::kSuccess) << "the capture was broken";
  api.destroyGraph(graph);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), ErrorCode::kCapturing);
  EXPECT_NE(refused.status().toString().find("qk_dim=56"), std::string::npos) << refused.status().toString();
  EXPECT_TRUE(served) << served.status().toString();
  EXPECT_TRUE(captured.isOk()) << captured.toString();

  // Outside of the capture the same spec is served.
  AttentionData afterwards = AttentionData::draw(cold, random);
  check(afterwards);
}

} // namespace
} // namespace nsa::test
