// How many programs share the keys of decode's few queries: by rule, as it was measured, or by hand. What they find is
// the same.
#include "runtime/base/config_text.h"
#include "runtime/base/key_splits.h"
#include "tests/cpu/route_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/decode_run.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <set>

namespace nsa::tools {
namespace {

constexpr int64_t kTokens = 2048;

Spec decodeOf() {
  Spec spec;
  spec.op = Operator::kDecode;
  spec.dtype = DType::kF32;
  spec.queryHeads = 2;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 16;
  return spec;
}

constexpr int64_t kNew = 8; // as few as programs share keys for
Maxima someTokens(int64_t tokens) { return {.batch = 1, .tokensQ = kNew, .seqlenQ = kNew, .seqlenK = tokens}; }

class SplitsRouteTest : public RouteTest {
protected:
  void store(int64_t splits) const {
    storeRoute(splitsFamily(decodeOf()), splitsRoute(decodeOf(), someTokens(kTokens)), splits);
  }

  // Decodes so many tokens, compares all of them with the reference, and gives the room for what the programs find,
  // which is compiled into the kernel that adds it up.
  std::string slots(int64_t tokens = kTokens) {
    Spec whole = decodeOf();
    whole.op = Operator::kNsa;
    const OperatorInputs history = drawInputs(whole, {{tokens}, {tokens}}, test::freshSeed());
    Result<DecodeRun> run =
        DecodeRun::open(*accelerator, history, {.room = tokens, .mostNew = kNew}, allOutputs(Operator::kDecode));
    EXPECT_TRUE(run) << run.status().toString();
    const EngineHandle handle = engine();
    Result<PlanHandle> plan = createPlan(handle.get(), run->spec(), run->maxima());
    if (!plan)
      return plan.status().toString();
    EXPECT_TRUE(run->allocateWorkspace(plan->get()).isOk());
    for (int64_t done = 0; done < tokens; done += kNew) {
      const Status step = run->step(plan->get(), {std::min(kNew, tokens - done)});
      if (!step.isOk())
        return step.toString();
    }
    const OperatorCheck check = checkOperator(history, *run->collected());
    EXPECT_TRUE(check.within()) << check.toString();
    const std::string problem = describePlan(plan->get()).value("problem", "");
    const size_t at = problem.find(" slots=");
    return at == std::string::npos ? problem : problem.substr(at + 7, problem.find(' ', at + 7) - at - 7);
  }

  // The problems of all kernels that the plan of an empty database lacks.
  std::set<std::string> lacking() {
    settings.missPolicy = NSA_MISS_FAIL;
    const EngineHandle handle = engine();
    const Result<nlohmann::json> report = explain(handle.get(), decodeOf(), someTokens(kTokens));
    EXPECT_TRUE(report) << report.status().toString();
    return problemsOf(*report);
  }
  // The problems that a tuning of the same plan as a workload would have kernels for.
  std::set<std::string> planned() {
    const std::string workload = R"({"name": "one", "plans": [)" + planText(decodeOf(), someTokens(kTokens)) + "]}";
    settings.missPolicy = NSA_MISS_DEFAULT;
    const EngineHandle handle = engine();
    nsa_tune_options options = NSA_INIT(nsa_tune_options);
    options.dry_run = 1;
    char *text = nullptr;
    EXPECT_EQ(nsa_tune_workload(handle.get(), workload.c_str(), &options, nullptr, &text, nullptr), NSA_OK)
        << toStatus(NSA_INTERNAL).toString();
    const nlohmann::json report = nlohmann::json::parse(text ? text : "{}");
    nsa_free(text);
    return problemsOf(report);
  }
  static std::set<std::string> problemsOf(const nlohmann::json &report) {
    std::set<std::string> problems;
    for (const nlohmann::json &kernel : report["kernels"])
      problems.insert(kernel.value("problem", ""));
    return problems;
  }
  static size_t countOf(const std::set<std::string> &problems, const std::string &part) {
    return static_cast<size_t>(std::ranges::count_if(
        problems, [&](const std::string &problem) { return problem.find(part) != std::string::npos; }));
  }
};

TEST_F(SplitsRouteTest, AMeasuredNumberStandsInThePlaceOfTheRules) {
  const Maxima maxima = someTokens(kTokens);
  // One share of the compressed keys, 16 of the selected ones, 8 of the window's.
  EXPECT_EQ(KeySplits::make(decodeOf(), maxima).counts, (std::array<int64_t, 3>{1, 16, 8}));
  EXPECT_EQ(slots(), "32");
  EXPECT_EQ(explained(decodeOf(), maxima, "sel")["splits"],
            (nlohmann::json{{"cmp", 1}, {"sel", 16}, {"win", 8}, {"source", "rule"}}));
  store(2);
  EXPECT_EQ(slots(), "16");
  EXPECT_EQ(explained(decodeOf(), maxima, "sel")["splits"],
            (nlohmann::json{
                {"cmp", 1}, {"sel", 2}, {"win", 2}, {"source", "decode.splits batch=1 seqlen_k=2048 seqlen_q=8"}}));
  EXPECT_EQ(slots(1500), "16") << "of the same bucket";
  EXPECT_EQ(explained(decodeOf(), someTokens(1000), "sel")["splits"]["source"], "rule") << "of another one";
  settings.decodeSplits = 4; // by hand
  EXPECT_EQ(explained(decodeOf(), maxima, "sel")["splits"],
            (nlohmann::json{{"cmp", 1}, {"sel", 4}, {"win", 4}, {"source", "decode_splits"}}));
  settings.decodeSplits = 0;
  settings.ignoreThresholds = true;
  EXPECT_EQ(slots(), "32");
}

TEST_F(SplitsRouteTest, NeverLeavesItToTheRule) {
  store(StoredRoute::kNever);
  EXPECT_EQ(slots(), "32");
  EXPECT_EQ(explained(decodeOf(), someTokens(kTokens), "sel")["splits"]["source"], "rule, as measured");
}

// `slots` is compiled into a kernel, so no kernel of another number serves.
TEST_F(SplitsRouteTest, AWorkloadIsTunedForTheSplitsOfItsEngine) {
  settings.decodeSplits = 4;
  EXPECT_EQ(countOf(lacking(), " slots=16"), 1u);
  EXPECT_EQ(planned(), lacking());
  settings.decodeSplits = 0;
  store(2);
  EXPECT_EQ(countOf(lacking(), " slots=16"), 1u);
  EXPECT_EQ(countOf(planned(), " slots=16"), 1u);
  EXPECT_EQ(countOf(planned(), " slots=32"), 1u) << "the threshold may be measured anew";
  settings.ignoreThresholds = true;
  EXPECT_EQ(countOf(lacking(), " slots=32"), 1u);
  EXPECT_EQ(planned(), lacking());
}

} // namespace
} // namespace nsa::tools
