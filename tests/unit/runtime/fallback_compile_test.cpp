// What the miss policies take from the ladder before and after they compile, with the real compiler on the CPU.
#include "runtime/base/cpu_features.h"
#include "tests/unit/runtime/planner_fixture.h"

namespace nsa {
namespace {

class FallbackCompileTest : public test::PlannerFixture {
protected:
  void keep(const std::string &from) { std::filesystem::copy_file(options.cachePath, folder.file(from)); }
};

TEST_F(FallbackCompileTest, ATunedNeighbourBeatsAnUnmeasuredDefault) {
  options.templateDir = copyTemplates();
  describe(*open(MissPolicy::kTune));
  maxima.seqlenK = 1000;
  auto engine = open(MissPolicy::kDefault);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["source"], "database");
  EXPECT_EQ(plan["tuned"], true);
  EXPECT_EQ(plan["launches"][0]["step"], "nearest");
  EXPECT_EQ(engine->counters().kernelsCompiled, 0u);
  EXPECT_EQ(engine->counters().fallbacksOf(FallbackStep::kNearest), 1u);
  EXPECT_EQ(describe(*engine)["source"], "memory");
  // A policy that tunes takes no neighbour.
  auto tunes = open(MissPolicy::kTune);
  EXPECT_EQ(describe(*tunes)["launches"][0]["step"], "exact");
  EXPECT_EQ(tunes->counters().kernelsMeasured, 4u);
  EXPECT_EQ(tunes->counters().fallbacksOf(FallbackStep::kNearest), 0u);
}

// The first configuration is the same for all lengths, so an unmeasured neighbour is the kernel that would be compiled.
TEST_F(FallbackCompileTest, AnUntunedNeighbourSavesACompilation) {
  const Json first = describe(*open(MissPolicy::kDefault));
  EXPECT_EQ(first["launches"][0]["step"], "compiled");
  maxima.seqlenK = 1000;
  auto engine = open(MissPolicy::kDefault);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["launches"][0]["step"], "nearest");
  EXPECT_EQ(plan["tuned"], false);
  EXPECT_EQ(plan["launches"][0]["content"], first["launches"][0]["content"]);
  EXPECT_EQ(engine->counters().kernelsCompiled, 0u);
  options.fallbacks = *FallbackSteps::parse("", "compiled");
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["launches"][0]["content"], first["launches"][0]["content"])
      << "compiled, it is the same kernel";
}

TEST_F(FallbackCompileTest, WhereNothingIsStoredTheDefaultIsCompiledAndCounted) {
  auto engine = open(MissPolicy::kDefault);
  EXPECT_EQ(describe(*engine)["launches"][0]["step"], "compiled");
  EXPECT_EQ(engine->counters().fallbacksOf(FallbackStep::kCompiled), 1u);
  EXPECT_GT(engine->counters().compileMs, 0);
  auto later = open(MissPolicy::kDefault);
  EXPECT_EQ(describe(*later)["launches"][0]["step"], "exact") << "stored, though not measured";
  EXPECT_EQ(later->counters().fallbacksOf(FallbackStep::kCompiled), 0u);
  options.fallbacks = *FallbackSteps::parse("", "nearest");
  options.cachePath = folder.file("empty.db");
  Result<PlanPointer> refused = open(MissPolicy::kDefault)->plan(spec, maxima, nullptr);
  ASSERT_FALSE(refused.isOk());
  EXPECT_EQ(refused.status().code(), ErrorCode::kCacheMiss);
}

// Older code comes behind a compilation, but before an error.
TEST_F(FallbackCompileTest, WithoutACompilerOlderCodeServes) {
  if (hostCpuFeatures() != "x86-64-v4")
    GTEST_SKIP() << "this processor has no older level that it could fall back to";
  options.cpuFeatures = "x86-64-v3";
  describe(*open(MissPolicy::kDefault));
  options.cpuFeatures = "";
  keep("older.db");
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["launches"][0]["step"], "compiled");
  options.cachePath = folder.file("older.db");
  options.compilerPath = "absent.so"; // which no loader finds
  auto engine = open(MissPolicy::kDefault);
  EXPECT_EQ(describe(*engine)["launches"][0]["step"], "architecture");
  EXPECT_EQ(engine->counters().fallbacksOf(FallbackStep::kArchitecture), 1u);
  options.fallbacks = *FallbackSteps::parse("", "nearest,model,compiled,cpu");
  EXPECT_EQ(open(MissPolicy::kDefault)->plan(spec, maxima, nullptr).status().code(), ErrorCode::kUnavailable)
      << "the error of the compilation";
}

// A neighbour that another compiler made is compiled anew with its configuration, and stays the neighbour's choice.
TEST_F(FallbackCompileTest, ANeighbourOfAnotherCompilerIsMadeAgain) {
  const Json before = describe(*open(MissPolicy::kTune));
  storedByAnotherCompiler();
  maxima.seqlenK = 1000;
  auto engine = open(MissPolicy::kDefault);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["launches"][0]["content"], before["launches"][0]["content"]);
  EXPECT_EQ(plan["launches"][0]["step"], "nearest");
  EXPECT_EQ(plan["tuned"], true);
  EXPECT_EQ(engine->counters().kernelsCompiled, 1u);
  EXPECT_EQ(stored().manifest.evidence["compiler"], "older") << "nothing of it was stored";
}

TEST_F(FallbackCompileTest, AllKernelsOfAnOperatorFindTheirNeighbours) {
  spec.op = Operator::kNsa;
  spec.selCount = 4;
  spec.selBlock = 32;
  maxima = {1, 512, 512, 512};
  describe(*open(MissPolicy::kDefault));
  maxima = {1, 2048, 2048, 2048};
  auto engine = open(MissPolicy::kFail);
  Json plan = describe(*engine);
  EXPECT_EQ(plan["source"], "database") << plan;
  for (const Json &launch : plan["launches"])
    EXPECT_EQ(launch["step"], "nearest") << launch;
  EXPECT_EQ(engine->counters().fallbacksOf(FallbackStep::kNearest), plan["launches"].size());
  Result<std::string> text = open(MissPolicy::kFail)->explain(spec, maxima);
  ASSERT_TRUE(text.isOk());
  const Json explained = Json::parse(*text);
  std::vector<std::string> parts;
  for (const Json &kernel : explained["kernels"]) {
    EXPECT_EQ(kernel["step"], "nearest");
    parts.push_back(kernel["part"]);
  }
  EXPECT_EQ(parts, (std::vector<std::string>{"compress", "cmp", "select", "sel", "win", "combine"}));
}

// The route of the selected branch, as explain shows it: all blocks are selected up to a length.
TEST_F(FallbackCompileTest, RoutesAreExplainedWithTheirThreshold) {
  spec.op = Operator::kNsa;
  spec.selCount = 4;
  spec.selBlock = 32;
  auto routes = [&](int64_t length) {
    maxima = {1, length, length, length};
    Result<std::string> text = open(MissPolicy::kFail)->explain(spec, maxima);
    EXPECT_TRUE(text.isOk()) << text.status().toString();
    const Json explained = Json::parse(*text);
    Json found;
    for (const Json &kernel : explained["kernels"])
      if (kernel.contains("route"))
        found[kernel["part"]] = kernel["route"]["threshold_seqlen_k"];
    return found;
  };
  EXPECT_EQ(routes(128), (Json{{"sel", 128}}));
  EXPECT_EQ(routes(129), Json());
  EXPECT_EQ(routes(24), (Json{{"sel", 128}, {"win", 24}}));
}

TEST_F(FallbackCompileTest, APinnedChoiceIsCompiledWithItsConfiguration) {
  options.templateDir = "";
  const Json tuned = describe(*open(MissPolicy::kTune));
  storedByAnotherCompiler();
  keep("pin.db");
  options.cachePath = folder.file("own.db");
  options.pinPath = folder.file("pin.db");
  auto engine = open(MissPolicy::kDefault);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["launches"][0]["config"], tuned["launches"][0]["config"]);
  EXPECT_EQ(plan["launches"][0]["content"], tuned["launches"][0]["content"]);
  EXPECT_EQ(plan["tuned"], true);
  EXPECT_EQ(engine->counters().kernelsCompiled, 1u);
  // What the pin lacks is the default; neither leaves a choice in the user's database.
  spec.qkDim = spec.vDim = 16;
  EXPECT_EQ(describe(*engine)["launches"][0]["step"], "compiled");
  engine.reset();
  std::string warning;
  auto store = KernelStore::open({.path = options.cachePath, .readOnly = true}, warning);
  EXPECT_EQ((*store)->listChoices()->size(), 0u);
  EXPECT_EQ((*store)->listKernels()->size(), 2u);
}

} // namespace
} // namespace nsa
