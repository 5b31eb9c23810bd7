// Kernels that another revision of the compiler made, with the real one on the CPU: who makes them again, who takes
// what others have made, and what serves meanwhile.
#include "cache/pack_writer.h"
#include "tests/harness/wait_until.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <algorithm>
#include <thread>

namespace nsa {
namespace {

class UpgradeTest : public test::PlannerFixture {
protected:
  UpgradeTest() { options.templateDir = copyTemplates(); }

  static bool settle(const Engine &engine) {
    return test::waitUntil([&] { return engine.counters().backgroundPending == 0; });
  }
  Json explain(MissPolicy policy) {
    Result<std::string> text = open(policy)->explain(spec, maxima);
    EXPECT_TRUE(text.isOk()) << text.status().toString();
    return text ? Json::parse(*text) : Json();
  }
};

TEST_F(UpgradeTest, TheStoredConfigIsCompiledAgainByOneOfThoseWhoFindIt) {
  const Json before = describe(*open(MissPolicy::kTune));
  storedByAnotherCompiler();
  auto strict = open(MissPolicy::kFail);
  EXPECT_EQ(describe(*strict)["source"], "database") << "under `fail` nothing is compiled, and the old kernel serves";
  EXPECT_EQ(strict->counters().kernelsCompiled, 0u);
  EXPECT_EQ(explain(MissPolicy::kDefault)["would"], "compile the stored configuration again");

  std::vector<std::shared_ptr<Engine>> engines;
  for (int i = 0; i < 4; ++i)
    engines.push_back(open(MissPolicy::kDefault));
  std::vector<Json> plans(engines.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < engines.size(); ++i)
      threads.emplace_back([&, i] { plans[i] = describe(*engines[i]); });
  }
  uint64_t compiled = 0;
  for (size_t i = 0; i < engines.size(); ++i) {
    const uint64_t own = engines[i]->counters().kernelsCompiled;
    EXPECT_EQ(plans[i]["source"], own ? "compiled" : "database");
    EXPECT_EQ(plans[i]["tuned"], true);
    EXPECT_EQ(plans[i]["launches"][0]["content"], before["launches"][0]["content"]);
    EXPECT_EQ(plans[i]["launches"][0]["config"], before["launches"][0]["config"]);
    compiled += own;
  }
  EXPECT_EQ(compiled, 1u) << "the content is the same as before: only the manifest tells that it was made again";
  EXPECT_NE(stored().manifest.evidence["compiler"], "older");
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "database");
}

// A new compiler's kernels may want another config, so `nsa tune` must see that they were not measured.
TEST_F(UpgradeTest, AMeasurementStaysThatOfTheCompilerWhoseKernelsWereMeasured) {
  describe(*open(MissPolicy::kTune));
  const StoredChoice measured = stored().choice;
  for (int i = 0; i < 2; ++i) {
    storedByAnotherCompiler();
    auto engine = open(MissPolicy::kDefault);
    EXPECT_EQ(describe(*engine)["source"], "compiled");
    const Stored again = stored();
    EXPECT_NE(again.manifest.evidence.at("compiler"), "older");
    EXPECT_EQ(again.choice.provenance, "compiler=older remade=" + again.manifest.evidence.at("compiler"));
    EXPECT_TRUE(again.choice.tuned);
    EXPECT_EQ(again.choice.evidence, measured.evidence);
  }
}

// It is the problem's own, whatever may serve in its place.
TEST_F(UpgradeTest, ItIsNoFallback) {
  const Json before = describe(*open(MissPolicy::kDefault));
  storedByAnotherCompiler();
  options.fallbacks = *FallbackSteps::parse("", "exact");
  EXPECT_EQ(explain(MissPolicy::kDefault)["would"], "compile the stored configuration again");
  auto engine = open(MissPolicy::kDefault);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["source"], "compiled") << plan;
  EXPECT_EQ(plan["launches"][0]["step"], "exact");
  EXPECT_EQ(plan["launches"][0]["content"], before["launches"][0]["content"]);
  EXPECT_EQ(engine->counters().kernelsCompiled, 1u);
  storedByAnotherCompiler();
  options.compilerPath = "absent.so"; // which no loader finds
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "database") << "without a compiler it serves as it is";
}

// An engine decides again once it knows the revision of the compiler, and each time that it looks for another's result.
TEST_F(UpgradeTest, AKernelOfAPackIsCountedOnceHoweverOftenItIsLookedUp) {
  describe(*open(MissPolicy::kTune));
  storedByAnotherCompiler();
  const std::string pack = folder.file("older.nsapack");
  Result<CacheFile> from = CacheFile::open(options.cachePath);
  ASSERT_TRUE(from) << from.status().toString();
  ASSERT_TRUE(writePack(*from, pack, {.source = "test"}));
  options.cachePath = folder.file("empty.db");
  options.cachePacks = pack;
  auto background = open(MissPolicy::kBackground);
  EXPECT_EQ(describe(*background)["source"], "pack");
  EXPECT_EQ(background->cacheCounters().packHits, 1u) << "it serves as it is";
  ASSERT_TRUE(settle(*background));
  EXPECT_EQ(background->cacheCounters().packHits, 2u) << "and its configuration is compiled again";
  options.cachePath = folder.file("other.db");
  auto engine = open(MissPolicy::kDefault);
  EXPECT_EQ(describe(*engine)["source"], "compiled");
  EXPECT_EQ(engine->cacheCounters().packHits, 1u);
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "database");
}

// A service may not wait for what serves already.
TEST_F(UpgradeTest, InTheBackgroundItServesMeanwhile) {
  describe(*open(MissPolicy::kTune));
  storedByAnotherCompiler();
  const StoredChoice measured = stored().choice;
  const Json would = explain(MissPolicy::kBackground);
  EXPECT_EQ(would["would"], "run what the database holds");
  EXPECT_NE(would["why"].get<std::string>().find("compiled again in the background"), std::string::npos) << would;
  auto engine = open(MissPolicy::kBackground);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["source"], "database");
  EXPECT_EQ(plan["tuned"], true);
  EXPECT_EQ(plan["milliseconds"]["compile"], 0);
  ASSERT_EQ(plan["fallbacks"].size(), 1u) << plan;
  EXPECT_NE(plan["fallbacks"][0].get<std::string>().find("another compiler revision"), std::string::npos) << plan;
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundDone, 1u);
  EXPECT_EQ(engine->counters().kernelsCompiled, 1u) << "the same config, and nothing else";
  EXPECT_EQ(engine->counters().kernelsMeasured, 0u);
  EXPECT_NE(stored().manifest.evidence["compiler"], "older");
  EXPECT_EQ(stored().choice.evidence, measured.evidence);
  EXPECT_TRUE(describe(*engine)["fallbacks"].empty()) << "the next plan has it";

  // As a neighbour it serves as it is, too.
  storedByAnotherCompiler();
  maxima.seqlenK = 1000;
  options.compilerPath = "absent.so"; // which no loader finds
  const Json other = describe(*open(MissPolicy::kBackground));
  EXPECT_EQ(other["launches"][0]["step"], "nearest");
  EXPECT_EQ(other["fallbacks"].size(), 1u) << other;
}

// What was compiled in its place is of this compiler, so there is nothing to compile again.
TEST_F(UpgradeTest, AKernelThatCannotBeLoadedLeavesNothingForTheBackground) {
  spec.layout = Layout::kPacked; // with a kernel in front that has no choices: it is never tuned
  describe(*open(MissPolicy::kTune));
  {
    std::string warning;
    auto store = KernelStore::open({.path = options.cachePath}, warning);
    ASSERT_TRUE(store) << store.status().toString();
    const std::vector<StoredChoice> choices = *(*store)->listChoices();
    const auto choice =
        std::ranges::find_if(choices, [](const StoredChoice &each) { return each.problem.starts_with("sequences "); });
    ASSERT_NE(choice, choices.end());
    StoredKernel kernel = **(*store)->findKernel(choice->content);
    Manifest manifest = *Manifest::parse(kernel.manifest);
    manifest.evidence["compiler"] = "older";
    manifest.entry = "+1000000"; // behind its image
    kernel.manifest = manifest.serialize();
    ASSERT_TRUE((*store)->put(kernel, &*choice).isOk());
  }
  auto engine = open(MissPolicy::kBackground);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["source"], "compiled") << plan;
  ASSERT_EQ(plan["fallbacks"].size(), 1u) << plan;
  EXPECT_NE(plan["fallbacks"][0].get<std::string>().find("entry"), std::string::npos) << plan;
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundDone + engine->counters().backgroundFailed, 0u);
}

} // namespace
} // namespace nsa
