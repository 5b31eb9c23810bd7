// Plans with batch_invariant: their kernels, their splits and the keys of both do not depend on the sizes of the plan.
#include "runtime/engine/choices/kernel_task.h"
#include "runtime/engine/graph/plan_key.h"
#include "runtime/engine/graph/routing.h"
#include "runtime/engine/report/describe.h"
#include "tests/unit/runtime/c_api_fixture.h"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace nsa {
namespace {

Spec invariantSpec(int32_t kvHeads = 4) {
  Spec spec;
  spec.op = Operator::kDecode;
  spec.queryHeads = 16 * kvHeads;
  spec.kvHeads = kvHeads;
  spec.qkDim = spec.vDim = 128;
  spec.batchInvariant = true;
  return spec;
}

std::vector<Maxima> manyMaxima() {
  std::vector<Maxima> all;
  for (const int64_t batch : {1, 7, 64, 4096})
    for (const int64_t queries : {1, 8, 9, 300})
      for (const int64_t keys : {300, 1024, 4096, 1 << 17, 1 << 22})
        all.push_back({.batch = batch, .tokensQ = batch * queries, .seqlenQ = queries, .seqlenK = keys});
  return all;
}

std::vector<std::string> keysOf(const Routing &routing) {
  std::vector<std::string> keys;
  for (const Step &step : routing.steps())
    keys.push_back(Problem::make(step.spec, step.maxima).key());
  return keys;
}

TEST(BatchInvariant, PlansOfAllSizesHaveTheSameKernelsAndSplits) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const int32_t pageSize : {0, 256})
      for (const int32_t branches : {1, 2, 4, 5, 6, 7}) {
        Spec spec = invariantSpec();
        spec.layout = layout;
        spec.pageSize = pageSize;
        spec.branches = branches;
        std::set<std::vector<std::string>> keys;
        std::set<std::array<int64_t, 3>> splits;
        const PlanKey key = PlanKey::make(spec, manyMaxima().front());
        for (const Maxima &maxima : manyMaxima()) {
          ASSERT_TRUE(maxima.validate(spec).isOk());
          keys.insert(keysOf(routingOf(spec, maxima, {})));
          splits.insert(WorkspaceLayout(spec, maxima, 0, true).shares.counts);
          EXPECT_EQ(PlanKey::make(spec, maxima), key);
          EXPECT_EQ(routesOf(spec, maxima), 0);
        }
        EXPECT_EQ(keys.size(), 1u) << branches;
        EXPECT_EQ(splits.size(), 1u) << branches;
      }
  EXPECT_EQ(KeySplits::make(invariantSpec(), manyMaxima().back()).counts, (std::array<int64_t, 3>{16, 16, 8}));
  EXPECT_EQ(KeySplits::make(invariantSpec(64), manyMaxima().back()).counts, (std::array<int64_t, 3>{8, 8, 8}));
  EXPECT_NE(PlanKey::make(invariantSpec(), manyMaxima().front()),
            PlanKey::make(invariantSpec(8), manyMaxima().front()));
}

TEST(BatchInvariant, NoOptionAndNoMeasurementChangesThem) {
  const FindRoute find = [](const std::string &, const std::string &name) -> std::optional<StoredRoute> {
    ADD_FAILURE() << name;
    return std::nullopt;
  };
  const Maxima maxima = manyMaxima().front();
  const RouteRules rules{.decodeSplits = 3, .mayStep = true, .forceVariant = std::string(kStepVariant)};
  const Routing routing = routingOf(invariantSpec(), maxima, rules, find);
  EXPECT_EQ(keysOf(routing), keysOf(routingOf(invariantSpec(), maxima, {})));
  std::string launches;
  for (const Step &step : routing.steps())
    launches += " " + std::string(operatorName(step.spec.op));
  EXPECT_EQ(launches, " cache_sequences append compress split_cmp scores rank choose ascend split_sel_win merge");
  for (const Step &step : routing.steps())
    if (step.node->sharesKeys)
      EXPECT_EQ(describeRoute(routing, step).splitsSource, "batch_invariant");
}

// A kernel of another plan may have been measured. None of them serves, not even for the lengths that are nearest.
TEST(BatchInvariant, KernelsAreKeptApartAndNotMeasured) {
  Spec other = invariantSpec();
  other.batchInvariant = false;
  const Maxima chosen = choosingMaxima(invariantSpec(), manyMaxima().back());
  const std::vector<Step> steps = stepsOf(invariantSpec(), manyMaxima().back()), others = stepsOf(other, chosen);
  ASSERT_EQ(steps.size(), others.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const KernelTask task = operatorTask(steps[i].spec, steps[i].maxima);
    const KernelTask usual = operatorTask(others[i].spec, others[i].maxima);
    EXPECT_EQ(ProblemKey::parse(task.key), task.problem) << task.key;
    EXPECT_EQ(task.problem.fixed, usual.problem.fixed);
    EXPECT_EQ(task.problem.distanceTo(usual.problem), std::nullopt) << task.key;
    EXPECT_FALSE(task.isTuned);
    EXPECT_FALSE(task.mayBeOutdated);
    EXPECT_TRUE(usual.mayBeOutdated);
    EXPECT_FALSE(isTunedProblem(task.key));
    EXPECT_EQ(isTunedProblem(usual.key), isTuned(usual.problem.op)) << usual.key;
    // Which candidate a device can launch does not depend on the sizes either.
    EXPECT_EQ(task.grid, operatorTask(steps[i].spec, manyMaxima().front()).grid);
  }
  EXPECT_EQ(operatorTask(steps.back().spec, steps.back().maxima).key,
            "merge dtype=bf16 gate=value gate_per_group=0 group=16 slots=48 v_dim=128 | batch=1 batch_invariant=1 "
            "kv_heads=4 seqlen_k=1048576 seqlen_q=1");
}

TEST(BatchInvariant, OnlyDecodeReadsTheField) {
  for (const OperatorDef &def : publicOperators()) {
    Spec spec = invariantSpec();
    spec.op = def.op;
    spec.clearUnread();
    EXPECT_EQ(spec.batchInvariant, def.op == Operator::kDecode) << def.name;
  }
}

TEST(BatchInvariant, AnotherValueThanATruthValueIsNamed) {
  nsa_spec spec = NSA_INIT(nsa_spec);
  EXPECT_EQ(spec.batch_invariant, 0);
  test::c_api::Call call(NSA_LAYOUT_DENSE);
  test::Scratch folder;
  test::c_api::Engine engine(folder.file("kernels.db"));
  for (const int32_t value : {-1, 2}) {
    call.spec.batch_invariant = value;
    const test::c_api::Plan plan(engine, call);
    EXPECT_EQ(plan.status, NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(plan.error.field, "batch_invariant");
    EXPECT_STREQ(plan.error.value, std::to_string(value).c_str());
    EXPECT_STREQ(plan.error.rule, "must be 0 or 1");
  }
}

} // namespace
} // namespace nsa
