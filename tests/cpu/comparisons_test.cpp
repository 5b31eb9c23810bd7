// nsa_plan_comparisons: what the runs of a plan find, as structs and as the report for people.
#include "runtime/include/nsa/nsa.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace nsa {
namespace {

void expectSame(const nsa_comparison &comparison, const nlohmann::json &part) {
  EXPECT_EQ(comparison.part, part["part"]);
  EXPECT_EQ(comparison.operator_name, part["operator"]);
  EXPECT_EQ(comparison.template_name, part["kernel"]["template"]);
  EXPECT_EQ(comparison.config, part["kernel"]["config"]);
  ASSERT_EQ(comparison.compared == 1, part["compared"]);
  EXPECT_EQ(comparison.definition_template, part["definition"]["template"]);
  EXPECT_EQ(comparison.definition_config, part["definition"]["config"]);
  EXPECT_EQ(comparison.same_kernel == 1, part["same_kernel"]);
  if (comparison.lists != 0) {
    EXPECT_EQ(comparison.lists, part["lists"]);
    EXPECT_EQ(comparison.different_lists, part["different_lists"]);
    return;
  }
  EXPECT_EQ(comparison.elements, part["elements"]);
  EXPECT_EQ(comparison.max_abs, part["max_abs"]);
  EXPECT_EQ(comparison.mean_abs, part["mean_abs"]);
  EXPECT_EQ(comparison.relative_rms, part["relative_rms"]);
  EXPECT_EQ(comparison.unequal_nan, part["unequal_nan"]);
  EXPECT_EQ(comparison.unequal_inf, part["unequal_inf"]);
}

TEST(Comparisons, TheStructsSayWhatTheReportSays) {
  constexpr int kTokens = 96, kHeads = 2, kDim = 16;
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = "cpu";
  options.cache_path = ":memory:";
  options.cache_packs = "none";
  options.miss_policy = NSA_MISS_DEFAULT;
  const api::Engine engine(options);
  api::Spec spec;
  spec.op = NSA_OP_NSA;
  spec.dtype = NSA_FP32;
  spec.query_heads = kHeads;
  spec.kv_heads = 1;
  spec.qk_dim = spec.v_dim = kDim;
  spec.window = 32;
  spec.cmp_block = 8;
  spec.cmp_stride = 4;
  spec.sel_block = 8;
  spec.sel_count = 4;
  nsa_plan_options comparing = NSA_INIT(nsa_plan_options);
  comparing.compare = 1;
  const api::Plan plan = engine.plan(spec, {1, kTokens, kTokens}, comparing);
  EXPECT_THROW(plan.comparisons(), api::Error) << "nothing has run";

  std::vector<float> q(kTokens * kHeads * kDim), kv(kTokens * kDim), gates(kTokens * kHeads * 3, 0.5f), out(q.size());
  for (size_t i = 0; i < q.size(); ++i)
    q[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5f;
  for (size_t i = 0; i < kv.size(); ++i)
    kv[i] = static_cast<float>(i * 53 % 97) / 97 - 0.5f;
  const api::HostWorkspace workspace(plan.workspaceSize());
  const api::Tensor qTensor(q, {1, kTokens, kHeads, kDim}), kvTensor(kv, {1, kTokens, 1, kDim}),
      gateTensor(gates, {1, kTokens, kHeads, 3}), outTensor(out, {1, kTokens, kHeads, kDim});
  plan.run({{NSA_Q, qTensor}, {NSA_K, kvTensor}, {NSA_V, kvTensor}, {NSA_GATES, gateTensor}, {NSA_OUT, outTensor}},
           workspace.data(), workspace.size());

  const std::vector<nsa_comparison> comparisons = plan.comparisons();
  const nlohmann::json parts = nlohmann::json::parse(plan.compareReport())["parts"];
  ASSERT_EQ(comparisons.size(), parts.size());
  ASSERT_GE(comparisons.size(), 4u);
  int lists = 0;
  for (size_t i = 0; i < comparisons.size(); ++i) {
    SCOPED_TRACE(parts[i].dump());
    expectSame(comparisons[i], parts[i]);
    lists += comparisons[i].lists != 0;
    EXPECT_GT(comparisons[i].lists + comparisons[i].elements, 0);
    EXPECT_EQ(comparisons[i].unequal_nan, 0);
  }
  EXPECT_EQ(lists, 1) << "one kernel selects";

  nsa_comparison first = {};
  size_t count = 0;
  EXPECT_EQ(nsa_plan_comparisons(plan.handle(), &first, 1, &count, nullptr), NSA_OK);
  EXPECT_EQ(count, comparisons.size()) << "how many there are";
  EXPECT_STREQ(first.part, comparisons[0].part);
}

} // namespace
} // namespace nsa
