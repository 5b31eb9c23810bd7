// Tuning decode with the real compiler on the CPU: each of its kernels is measured where it stands, and one that spoils
// what a caller sees of the whole call is rejected. And what tuning one length leaves for the next.
#include "cache/pack_writer.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <map>

namespace nsa {
namespace {

using test::replaceOnce;

class DecodeTuning : public test::PlannerFixture {
protected:
  DecodeTuning() {
    spec = Spec();
    spec.op = Operator::kDecode;
    spec.dtype = DType::kF32;
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = spec.vDim = 32;
    spec.window = 100;
    spec.selCount = 4;
    maxima = {3, 3, 1, 700};
  }

  // The reports of a tuning, by operator.
  std::map<std::string, Json> tune(Engine &engine) {
    std::map<std::string, Json> reports;
    Result<std::string> text = engine.tune(spec, maxima);
    EXPECT_TRUE(text.isOk()) << text.status().toString();
    if (!text)
      return reports;
    Json report = Json::parse(*text);
    for (const Json &kernel : report.contains("kernels") ? report["kernels"] : Json::array({report})) {
      const std::string problem = kernel["problem"];
      reports[problem.substr(0, problem.find(' '))] = kernel;
    }
    return reports;
  }
};

TEST_F(DecodeTuning, MeasuresEachKernelThatHasChoices) {
  for (const int32_t page : {0, 64}) {
    spec.pageSize = page;
    auto engine = open(MissPolicy::kDefault);
    std::map<std::string, Json> reports = tune(*engine);
    for (const char *op : {"append", "compress", "split_cmp", "scores", "choose", "split_sel_win", "merge"}) {
      ASSERT_TRUE(reports.contains(op)) << op;
      EXPECT_EQ(reports[op]["rejected"], 0) << reports[op];
      EXPECT_GT(reports[op]["measured"], 0) << reports[op];
    }
    EXPECT_FALSE(reports.contains("ascend")) << "it has no choices";
    // What is stored serves an engine that may not compile.
    auto other = open(MissPolicy::kFail);
    Result<PlanPointer> plan = other->plan(spec, maxima, nullptr);
    ASSERT_TRUE(plan.isOk()) << plan.status().toString();
    EXPECT_EQ(Json::parse((*plan)->describe())["tuned"], true);
    EXPECT_EQ(other->counters().kernelsCompiled, 0u);
  }
}

// Decode and packed sequences need kernels that nothing can be measured of: what keeps only tuned kernels keeps them.
TEST_F(DecodeTuning, WhatKeepsTunedKernelsAloneKeepsAllThatARunNeeds) {
  const Spec decode = spec;
  const Maxima decodeMaxima = maxima;
  Spec packed = spec;
  packed.op = Operator::kNsa;
  packed.layout = Layout::kPacked;
  packed.selBlock = 32;
  const Maxima packedMaxima{2, 300, 200, 200};
  const auto tuneBoth = [&] {
    auto engine = open(MissPolicy::kDefault);
    for (const auto &[asked, most] : {std::pair{decode, decodeMaxima}, std::pair{packed, packedMaxima}})
      EXPECT_TRUE(engine->tune(asked, most).isOk());
  };
  const auto expectServed = [&](const char *from) {
    auto engine = open(MissPolicy::kFail);
    for (const auto &[asked, most] : {std::pair{decode, decodeMaxima}, std::pair{packed, packedMaxima}}) {
      Result<PlanPointer> plan = engine->plan(asked, most, nullptr);
      ASSERT_TRUE(plan.isOk()) << from << ": " << plan.status().toString();
      const Json described = Json::parse((*plan)->describe());
      EXPECT_EQ(described["tuned"], true) << from << described;
      for (const Json &launch : described["launches"])
        EXPECT_EQ(launch["step"], "exact") << from << launch;
    }
    EXPECT_EQ(engine->counters().kernelsCompiled, 0u);
  };
  options.cacheMaxBytes = 1; // each put removes whatever may go
  tuneBoth();
  options.cacheMaxBytes = 0;
  options.fallbacks = *FallbackSteps::parse("", "exact");
  expectServed("a database with a limit");

  std::string warning;
  {
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = options.cachePath}, warning);
    ASSERT_TRUE(store) << store.status().toString();
    CollectionRules rules;
    rules.maxBytes = 1;
    rules.maxIdleDays = 0;
    ASSERT_TRUE((*store)->collect(rules));
  }
  expectServed("a database after a collection");

  const std::string pack = folder.file("tuned.nsapack");
  {
    Result<CacheFile> from = CacheFile::open(options.cachePath);
    ASSERT_TRUE(from) << from.status().toString();
    const Result<PackReport> written = writePack(*from, pack, {.tunedOnly = true, .source = "test"});
    ASSERT_TRUE(written) << written.status().toString();
  }
  options.cachePath = ":memory:";
  options.cachePacks = pack;
  expectServed("a pack of tuned kernels");
}

// Many blocks need one more kernel. Many queries need the kernels of the forward pass.
TEST_F(DecodeTuning, MeasuresWhatOtherLengthsNeed) {
  spec.selBlock = 16; // the number of blocks counts, and few tokens make a short run
  maxima.seqlenK = 10000;
  auto engine = open(MissPolicy::kDefault);
  std::map<std::string, Json> reports = tune(*engine);
  ASSERT_TRUE(reports.contains("rank"));
  EXPECT_GT(reports["rank"]["measured"], 0) << reports["rank"];
  maxima = {2, 400, 200, 700};
  reports = tune(*engine);
  ASSERT_TRUE(reports.contains("append"));
  EXPECT_GT(reports["append"]["measured"], 0) << reports["append"];
  EXPECT_TRUE(reports.contains("sel"));
}

TEST_F(DecodeTuning, BranchesThatAreOffAreNotAskedFor) {
  for (const int32_t branches : {kBranchCmp, kBranchSel, kBranchWin, kBranchCmp | kBranchWin}) {
    spec.branches = branches;
    auto engine = open(MissPolicy::kDefault);
    for (const auto &[op, report] : tune(*engine))
      EXPECT_GT(report["measured"], 0) << branches << ' ' << op << report;
  }
}

TEST_F(DecodeTuning, AKernelThatSpoilsTheCallIsRejected) {
  templates.copyFrom(NSA_TEMPLATES);
  std::string wrong = templates.read("tile/merge.tile");
  replaceOnce(wrong, "kernel merge serves", "kernel forgetful serves");
  replaceOnce(wrong, "cost    ", "cost    1 + "); // the operator's own comes first
  // A split is added to itself in place of the sum.
  replaceOnce(wrong, "o[part: j], total)", "o[part: j], o[part: j])");
  templates.write("tile/forgetful.tile", wrong);
  options.templateDir = templates.path();
  auto engine = open(MissPolicy::kDefault);
  std::map<std::string, Json> reports = tune(*engine);
  ASSERT_TRUE(reports.contains("merge"));
  EXPECT_EQ(reports["merge"]["winner"]["template"], "merge");
  size_t rejected = 0;
  for (const Json &candidate : reports["merge"]["candidates"])
    if (candidate["template"] == "forgetful" && candidate["outcome"] != "pruned") {
      EXPECT_EQ(candidate["outcome"], "rejected") << candidate;
      EXPECT_NE(candidate["detail"].get<std::string>().find("out of run 0"), std::string::npos) << candidate;
      ++rejected;
    }
  EXPECT_GT(rejected, 0u);
}

TEST_F(DecodeTuning, LengthsOfOneConfigurationShareTheirCandidates) {
  spec.op = Operator::kWindow;
  maxima = {1, 128, 128, 128};
  auto engine = open(MissPolicy::kDefault);
  tune(*engine);
  const uint64_t compiled = engine->counters().kernelsCompiled;
  EXPECT_GT(compiled, 1u);
  maxima = {1, 256, 256, 256};
  std::map<std::string, Json> reports = tune(*engine);
  EXPECT_GT(reports["window"]["measured"], 1);
  EXPECT_EQ(engine->counters().kernelsCompiled, compiled);
}

} // namespace
} // namespace nsa
