// The threshold sel.dense_up_to at work: where every block is selected dense attention is the same as selection, and
// what was measured decides which of the two runs. Either way every output is right, and the lists are there.
#include "cache/kernel_store.h"
#include "tests/cpu/route_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"
#include "tools/support/operator_job.h"

namespace nsa::tools {
namespace {

// Four blocks of 16 are all there are up to 64 keys.
Spec smallSpec() {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = DType::kF32;
  spec.queryHeads = 2;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 16;
  spec.cmpBlock = 8;
  spec.cmpStride = 4;
  spec.selBlock = 16;
  spec.selCount = 4;
  spec.window = 32;
  return spec;
}

Maxima lengths(int64_t tokens) { return {.batch = 1, .tokensQ = tokens, .seqlenQ = tokens, .seqlenK = tokens}; }

class DenseRouteTest : public RouteTest {
protected:
  void store(int64_t threshold) const {
    Spec sel = spec;
    sel.op = Operator::kSel;
    storeRoute(routeFamily(sel), std::string(kDenseRoute), threshold);
  }

  // Runs the forward pass, checks all outputs, and gives the operator that served the selected branch.
  std::string servedBy(int64_t tokens) {
    const EngineHandle handle = engine();
    Result<PlanHandle> plan = createPlan(handle.get(), spec, lengths(tokens));
    if (!plan)
      return plan.status().toString();
    const OperatorInputs inputs = drawInputs(spec, {{tokens}, {tokens}}, test::freshSeed());
    Result<RunResult> run = runOnce(*accelerator, plan->get(), inputs, allOutputs(spec.op));
    if (!run)
      return run.status().toString();
    const OperatorCheck check = checkOperator(inputs, run->outputs);
    EXPECT_TRUE(check.within()) << check.toString();
    EXPECT_TRUE(run->outputs.contains(TensorName::kBlockList));
    EXPECT_TRUE(run->outputs.contains(TensorName::kLseSel));
    // Neither compression nor the window are among these: the window holds 32 keys alone.
    std::string served;
    const nlohmann::json description = describePlan(plan->get());
    for (const nlohmann::json &launch : description["launches"])
      if (const std::string op = launch.value("operator", ""); op == "sel" || op == "dense")
        served += (served.empty() ? "" : " ") + op;
    return served;
  }

  nlohmann::json explained(int64_t tokens) const { return RouteTest::explained(spec, lengths(tokens), "sel"); }

  Spec spec = smallSpec();
};

TEST_F(DenseRouteTest, WithoutAThresholdItIsTakenWhereverItIsTheSame) {
  EXPECT_EQ(servedBy(64), "dense");
  EXPECT_EQ(servedBy(40), "dense");
  EXPECT_EQ(servedBy(65), "sel");
  const nlohmann::json kernel = explained(40);
  EXPECT_EQ(kernel["route"]["name"], "dense");
  EXPECT_EQ(kernel["route"]["other"], "selection");
  EXPECT_EQ(kernel["route"]["source"], "exact");
  EXPECT_EQ(kernel["route"]["threshold_way"], "dense");
  EXPECT_EQ(kernel["route"]["threshold_side"], "up_to");
  EXPECT_EQ(kernel["route"]["threshold_seqlen_k"], 64);
  EXPECT_FALSE(explained(65).contains("route"));
}

TEST_F(DenseRouteTest, AThresholdDecidesWhereItIsTheSame) {
  store(32);
  EXPECT_EQ(servedBy(33), "sel") << "selection, although all blocks are selected";
  EXPECT_EQ(servedBy(64), "sel");
  spec.window = 16; // at 32 keys the window is no dense attention
  EXPECT_EQ(servedBy(30), "dense");
  const nlohmann::json above = explained(40)["route"], below = explained(30)["route"];
  EXPECT_EQ(above["name"], "selection");
  EXPECT_EQ(above["source"], "sel.dense_up_to");
  EXPECT_EQ(above["threshold_seqlen_k"], 32);
  EXPECT_NE(above["why"].get<std::string>().find("pays up to the threshold alone"), std::string::npos) << above;
  EXPECT_EQ(below["name"], "dense");
  EXPECT_EQ(below["source"], "sel.dense_up_to");
}

// One plan serves all lengths of a bucket, so the longest of them decides, which is never more than all blocks hold.
TEST_F(DenseRouteTest, ABucketHasOneAnswer) {
  store(48);
  EXPECT_EQ(servedBy(40), "sel") << "another length of its bucket may be 64";
  spec.selCount = 3;
  store(48);
  EXPECT_EQ(servedBy(40), "dense") << "up to the 48 keys that its blocks hold it pays";
}

TEST_F(DenseRouteTest, NeverIsAnAnswerAndMayBeIgnored) {
  store(StoredRoute::kNever);
  EXPECT_EQ(servedBy(64), "sel");
  EXPECT_EQ(servedBy(40), "sel");
  const nlohmann::json route = explained(40)["route"];
  EXPECT_EQ(route["name"], "selection");
  EXPECT_TRUE(route["threshold_seqlen_k"].is_null());
  EXPECT_NE(route["why"].get<std::string>().find("pays never"), std::string::npos) << route;
  settings.ignoreThresholds = true;
  EXPECT_EQ(servedBy(40), "dense");
  EXPECT_EQ(explained(40)["route"]["source"], "exact");
}

// The last few queries of a long prompt are other kernels than those that were measured.
TEST_F(DenseRouteTest, FewQueriesFollowNoThreshold) {
  store(StoredRoute::kNever);
  const Maxima last{.batch = 1, .tokensQ = 4, .seqlenQ = 4, .seqlenK = 64};
  EXPECT_EQ(RouteTest::explained(spec, last, "sel")["route"]["source"], "exact");
}

// A list of the caller's own may hold less than there is, whatever pays.
TEST_F(DenseRouteTest, SelectedAttentionAloneTakesItsList) {
  store(64);
  spec.op = Operator::kSel;
  const EngineHandle handle = engine();
  Result<PlanHandle> plan = createPlan(handle.get(), spec, lengths(64));
  ASSERT_TRUE(plan) << plan.status().toString();
  EXPECT_EQ(describePlan(plan->get())["launches"][0].value("operator", ""), "sel");
}

} // namespace
} // namespace nsa::tools
