// The miss path with the real compiler on the CPU: what each policy compiles, stores and finds again; the tuner's gate
// against a planted template that is wrong by one token; forced variants, edited templates, dumped sources.
#include "cache/kernel_store.h"
#include "runtime/engine/choices/routes.h"
#include "tests/harness/wait_until.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace nsa;
using test::replaceOnce;

namespace {

using PlannerTest = test::PlannerFixture;

TEST_F(PlannerTest, DefaultCompilesOnceAndIsFoundAgain) {
  auto first = open(MissPolicy::kDefault);
  Json compiled = describe(*first);
  EXPECT_EQ(compiled["source"], "compiled");
  EXPECT_EQ(compiled["tuned"], false);
  EXPECT_EQ(compiled["launches"][0]["template"], "attention");
  EXPECT_GT(compiled["milliseconds"]["compile"], 0);
  EXPECT_EQ(describe(*first)["source"], "memory");
  EXPECT_EQ(first->counters().kernelsCompiled, 1u);

  auto second = open(MissPolicy::kFail);
  Json stored = describe(*second);
  EXPECT_EQ(stored["source"], "database");
  EXPECT_EQ(stored["launches"][0]["content"], compiled["launches"][0]["content"]);
  EXPECT_EQ(second->counters().kernelsCompiled, 0u);
  // Other maxima in the same buckets are the same problem.
  maxima.seqlenK = 150;
  EXPECT_EQ(describe(*second)["source"], "memory");
  EXPECT_EQ(second->counters().kernelsLoaded, 1u);
}

TEST_F(PlannerTest, ThreadsThatMissTogetherCompileOnce) {
  auto engine = open(MissPolicy::kDefault);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] { EXPECT_TRUE(engine->plan(spec, maxima, nullptr).isOk()); });
  }
  EXPECT_EQ(engine->counters().kernelsCompiled, 1u);
  EXPECT_EQ(engine->counters().plansFromMemory, 7u);
}

// Engines that share a file are as good as processes: nothing but the file tells them of each other.
TEST_F(PlannerTest, EnginesThatMissTogetherCompileOnce) {
  std::vector<std::shared_ptr<Engine>> engines;
  for (int i = 0; i < 6; ++i)
    engines.push_back(open(MissPolicy::kDefault));
  {
    std::vector<std::jthread> threads;
    for (auto &engine : engines)
      threads.emplace_back([&] { EXPECT_TRUE(engine->plan(spec, maxima, nullptr).isOk()); });
  }
  uint64_t compiled = 0, found = 0;
  for (auto &engine : engines) {
    compiled += engine->counters().kernelsCompiled;
    found += engine->counters().plansFromDatabase;
  }
  EXPECT_EQ(compiled, 1u);
  EXPECT_EQ(found, 5u);
}

TEST_F(PlannerTest, ThreadsThatTuneTheSameTuneOnce) {
  options.templateDir = copyTemplates();
  auto engine = open(MissPolicy::kDefault), other = open(MissPolicy::kTune);
  std::vector<Json> reports(6);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < reports.size(); ++i)
      threads.emplace_back([&, i] {
        Result<std::string> text = (i % 2 ? engine : other)->tune(spec, maxima);
        ASSERT_TRUE(text.isOk()) << text.status().toString();
        reports[i] = Json::parse(*text);
      });
  }
  uint64_t sessions = 0;
  for (const Json &report : reports) {
    sessions += report["tuned_elsewhere"] == false;
    EXPECT_TRUE(report["winner"].is_object());
    EXPECT_EQ(report["measured"], 4);
    EXPECT_EQ(report["candidates"].size(), 4u);
  }
  EXPECT_EQ(engine->counters().kernelsCompiled + other->counters().kernelsCompiled, 4 * sessions);
  EXPECT_LT(sessions, 6u) << "a thread that began after another had finished does it again; not all of them";

  // Asked for again, it is done again: only what others do at that moment is waited for.
  Result<std::string> text = engine->tune(spec, maxima);
  ASSERT_TRUE(text.isOk()) << text.status().toString();
  EXPECT_EQ(Json::parse(*text)["tuned_elsewhere"], false);
}

// A failed maker leaves nothing behind, and each of those who waited finds the fault itself.
TEST_F(PlannerTest, WhoWaitedForAFailureFailsAsWell) {
  options.templateDir = copyTemplates();
  replaceOnce(tile, "grid    block", "grit    block");
  write("attention", tile);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, engine = open(MissPolicy::kDefault)] {
      Status status = engine->plan(spec, maxima, nullptr).status();
      EXPECT_NE(status.toString().find("grit"), std::string::npos) << status.toString();
    });
}

// Another process makes a default at this moment, and will for a long time.
TEST_F(PlannerTest, ACallerWithNothingToGainDoesNotWait) {
  std::string warning;
  auto store = KernelStore::open({.path = options.cachePath}, warning);
  ASSERT_TRUE(store) << store.status().toString();
  KeyLease lease(**store, {Problem::make(spec, maxima).key(), open(MissPolicy::kFail)->device().key(), "default"});
  ASSERT_EQ(lease.take(), KeyLease::State::kMine);
  countWaits();
  EXPECT_EQ(open(MissPolicy::kFail)->plan(spec, maxima, nullptr).status().code(), ErrorCode::kCacheMiss);
  options.forceVariant = "attention"; // what it forces, no other stores
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "compiled");
  options.forceVariant = "";
  options.templateDir = copyTemplates(); // other choices
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "compiled");
  options.templateDir = "";
  EXPECT_EQ(describe(*open(MissPolicy::kTune))["tuned"], true); // no default would do
  options.cachePath = ":memory:";
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "compiled");
  EXPECT_EQ(waits, 0);
}

TEST_F(PlannerTest, AWaitIsNoLookup) {
  std::string warning;
  auto store = KernelStore::open({.path = options.cachePath}, warning);
  ASSERT_TRUE(store) << store.status().toString();
  countWaits();
  auto engine = open(MissPolicy::kDefault);
  KeyLease lease(**store, {Problem::make(spec, maxima).key(), engine->device().key(), "default"});
  ASSERT_EQ(lease.take(), KeyLease::State::kMine);
  using Clock = std::chrono::steady_clock;
  Clock::time_point waitSeen, released;
  std::jthread owner([&] {
    EXPECT_TRUE(test::waitUntil([&] { return waits == 1; }));
    waitSeen = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    released = Clock::now();
    lease.release();
  });
  const Clock::time_point begin = Clock::now();
  const Json made = describe(*engine);
  const Clock::time_point end = Clock::now();
  owner.join();
  EXPECT_EQ(made["source"], "compiled");
  EXPECT_GT(made["milliseconds"]["lookup"], 0);
  // However slow the machine is, what is no wait falls before the wait or after the release.
  const std::chrono::duration<double, std::milli> besideTheWait = (waitSeen - begin) + (end - released);
  EXPECT_LE(made["milliseconds"]["lookup"], besideTheWait.count());
}

TEST_F(PlannerTest, TuneMeasuresAndStoresTheEvidence) {
  describe(*open(MissPolicy::kDefault)); // an untuned choice does not satisfy the policy
  auto engine = open(MissPolicy::kTune);
  Json tuned = describe(*engine);
  EXPECT_EQ(tuned["tuned"], true);
  EXPECT_GT(tuned["milliseconds"]["tune"], 0);
  EXPECT_EQ(tuned["fallbacks"].size(), 1u) << tuned["fallbacks"];
  EXPECT_GE(engine->counters().kernelsCompiled, 12u);
  EXPECT_GE(engine->counters().kernelsMeasured, 4u);
  EXPECT_EQ(engine->counters().kernelsRejected, 0u) << "every configuration of the tile program is right";

  auto second = open(MissPolicy::kTune);
  Json stored = describe(*second);
  EXPECT_EQ(stored["source"], "database");
  EXPECT_EQ(stored["tuned"], true);
  Result<std::string> text = second->explain(spec, maxima);
  ASSERT_TRUE(text.isOk());
  Json explained = Json::parse(*text);
  EXPECT_EQ(explained["database"]["evidence"].size(), explained["candidates"].size());
  EXPECT_EQ(second->counters().kernelsCompiled, 0u);
}

// A budget that ends before one complete round leaves the default, which was not measured.
TEST_F(PlannerTest, WhatWasNotMeasuredPassesForNoWinner) {
  options.templateDir = copyTemplates();
  options.tuneBudgetSeconds = 1e-9;
  auto hasty = open(MissPolicy::kTune);
  Json plan = describe(*hasty);
  EXPECT_EQ(plan["tuned"], false);
  EXPECT_EQ(plan["launches"][0]["step"], "compiled");
  EXPECT_EQ(hasty->counters().kernelsMeasured, 0u);
  EXPECT_FALSE(stored().choice.tuned);
  EXPECT_TRUE(stored().choice.evidence.empty());
  options.fallbacks = *FallbackSteps::parse("", "nearest");
  const Status refused = open(MissPolicy::kTune)->plan(spec, maxima, nullptr).status();
  EXPECT_EQ(refused.code(), ErrorCode::kUnavailable) << "a default is a step that is not allowed";
  EXPECT_NE(refused.error().hint.find("tune_budget_seconds"), std::string::npos) << refused.toString();
  options.fallbacks = FallbackSteps::all();

  options.tuneBudgetSeconds = 20;
  EXPECT_EQ(describe(*open(MissPolicy::kTune))["tuned"], true) << "it is tuned when there is time";
  const StoredChoice winner = stored().choice;
  EXPECT_TRUE(winner.tuned);
  options.tuneBudgetSeconds = 1e-9;
  auto later = open(MissPolicy::kDefault);
  Result<std::string> text = later->tune(spec, maxima);
  ASSERT_TRUE(text.isOk()) << text.status().toString();
  EXPECT_EQ(Json::parse(*text)["tuned"], false);
  EXPECT_EQ(Json::parse(*text)["measured"], 0);
  EXPECT_EQ(stored().choice, winner) << "and its evidence";
  EXPECT_EQ(describe(*later)["launches"][0]["content"], winner.content);
  EXPECT_EQ(describe(*later)["tuned"], true);
}

TEST_F(PlannerTest, ExplainKnowsWhatAPlanWouldPassOver) {
  describe(*open(MissPolicy::kDefault));
  auto would = [&](MissPolicy policy) {
    Result<std::string> text = open(policy)->explain(spec, maxima);
    EXPECT_TRUE(text.isOk()) << text.status().toString();
    return text ? Json::parse(*text) : Json();
  };
  EXPECT_EQ(would(MissPolicy::kDefault)["would"], "run what the database holds");
  Json tune = would(MissPolicy::kTune);
  EXPECT_EQ(tune["would"], "compile and measure candidates");
  EXPECT_NE(tune["database"]["trouble"].get<std::string>().find("never measured"), std::string::npos) << tune;
  Json fail = would(MissPolicy::kFail);
  EXPECT_EQ(fail["would"], "run what the database holds");
  EXPECT_TRUE(fail["candidates"].empty());
  options.forceVariant = "row_attention";
  fail = would(MissPolicy::kFail);
  EXPECT_EQ(fail["would"], "fail with a cache miss");
  EXPECT_NE(fail["database"]["trouble"].get<std::string>().find("forced is row_attention"), std::string::npos) << fail;
}

// The length itself was not measured.
TEST_F(PlannerTest, AMeasuredThresholdChoosesTheDefaultsTemplate) {
  options.templateDir = copyTemplates();
  templates.remove("cuda/simt"); // whose kernel of that name is for GPUs
  write("row_attention", planted("row_attention", "1000000000"));
  const std::string device = Json::parse(*open(MissPolicy::kDefault)->explain(spec, maxima))["device"];
  EXPECT_EQ(Json::parse(open(MissPolicy::kDefault)->describe())["device"]["choice_key"], device);
  auto servedBy = [&](int64_t threshold, int64_t seqlenK, int64_t seqlenQ) {
    std::filesystem::remove_all(folder.file("routed"));
    options.cachePath = folder.file("routed/kernels.db");
    if (threshold != 0) {
      std::string warning;
      auto store = KernelStore::open({.path = options.cachePath, .readOnly = false}, warning);
      EXPECT_TRUE(store && warning.empty()) << warning;
      const StoredRoute route{routeFamily(spec), device, attentionRoute(spec.op), threshold, "", {}};
      EXPECT_TRUE((*store)->putRoute(route).isOk());
    }
    maxima = {1, seqlenQ, seqlenQ, seqlenK};
    return describe(*open(MissPolicy::kDefault))["launches"][0]["template"].get<std::string>();
  };
  EXPECT_EQ(servedBy(0, 160, 160), "attention") << "by cost";
  EXPECT_EQ(servedBy(200, 160, 160), "row_attention");
  EXPECT_EQ(servedBy(200, 200, 200), "attention");
  EXPECT_EQ(servedBy(StoredRoute::kNever, 4096, 4096), "row_attention");
  EXPECT_EQ(servedBy(StoredRoute::kNever, 4096, 1), "attention") << "as many queries as keys were measured";
}

// A threshold tells the simple template from all others, so a kernel by hand serves where the tile program would.
TEST_F(PlannerTest, BehindAThresholdEachTemplateButTheSimpleOneMayServe) {
  options.templateDir = copyTemplates();
  write("by_hand", planted("by_hand", "0"));
  options.cachePath = folder.file("routed/kernels.db");
  maxima = {1, 256, 256, 256};
  ASSERT_EQ(describe(*open(MissPolicy::kDefault))["launches"][0]["template"], "by_hand");
  const std::string device = Json::parse(*open(MissPolicy::kDefault)->explain(spec, maxima))["device"];
  {
    std::string warning;
    auto store = KernelStore::open({.path = options.cachePath, .readOnly = false}, warning);
    ASSERT_TRUE(store && warning.empty()) << warning;
    ASSERT_TRUE((*store)->putRoute({routeFamily(spec), device, attentionRoute(spec.op), 200, "", {}}).isOk());
  }
  maxima = {1, 512, 512, 512};
  const Json plan = describe(*open(MissPolicy::kDefault));
  EXPECT_EQ(plan["launches"][0]["template"], "by_hand");
  EXPECT_EQ(plan["source"], "database") << plan;
}

TEST_F(PlannerTest, AWrongCandidateIsRejectedAndRecorded) {
  options.templateDir = copyTemplates();
  write("too_wide", wrongTemplate());
  spec.layout = Layout::kPacked; // uneven lengths and an empty sequence in the comparison
  maxima.batch = 3;
  maxima.tokensQ = 288;
  auto engine = open(MissPolicy::kDefault);
  Result<std::string> text = engine->tune(spec, maxima);
  ASSERT_TRUE(text.isOk()) << text.status().toString();
  Json report = Json::parse(*text);
  EXPECT_EQ(report["winner"]["template"], "attention");
  size_t rejected = 0;
  for (const Json &candidate : report["candidates"]) {
    if (candidate["template"] != "too_wide")
      continue;
    EXPECT_EQ(candidate["outcome"], "rejected") << candidate;
    EXPECT_NE(candidate["detail"].get<std::string>().find("differs"), std::string::npos) << candidate;
    ++rejected;
  }
  EXPECT_EQ(rejected, 4u);
  EXPECT_EQ(report["candidates"][0]["template"], "too_wide") << "it was the default, by its own claim";
  Json plan = describe(*engine);
  EXPECT_EQ(plan["source"], "memory");
  EXPECT_EQ(plan["launches"].back()["template"], "attention");
}

// Beside the tile program stand one that is right but looks at every key from the first on, and claims to be the
// default, and one whose loop ends after the first tile of keys: by far the fastest, and wrong.
TEST_F(PlannerTest, PlantedTemplatesDoNotDeceiveTheTuner) {
  options.templateDir = copyTemplates();
  std::string plodding = planted("plodding", "0");
  replaceOnce(plodding, "first_key = max(low(oldest), 0)", "first_key = 0");
  write("plodding", plodding);
  std::string hasty = planted("hasty", "1");
  replaceOnce(hasty, "for at in first_key .. past_key by",
              "for at in first_key .. min(first_key + key_tile, past_key) by");
  write("hasty", hasty);
  spec.window = 64;
  maxima = {1, 1024, 1024, 1024}; // the plodding one looks at eight times the keys
  auto engine = open(MissPolicy::kTune);
  Json plan = describe(*engine);
  EXPECT_EQ(plan["launches"].back()["template"], "attention");
  EXPECT_EQ(engine->counters().kernelsCompiled, 12u);
  EXPECT_EQ(engine->counters().kernelsMeasured, 8u);
  EXPECT_EQ(engine->counters().kernelsRejected, 4u);

  // What the next process reads.
  Result<std::string> text = open(MissPolicy::kFail)->explain(spec, maxima);
  ASSERT_TRUE(text.isOk()) << text.status().toString();
  Json stored = Json::parse(*text)["database"];
  EXPECT_EQ(stored["template"], "attention");
  EXPECT_EQ(stored["tuned"], true);
  ASSERT_EQ(stored["evidence"].size(), 12u);
  EXPECT_EQ(stored["evidence"][0]["template"], "plodding") << "it was the default, by its own claim";
  for (const Json &entry : stored["evidence"]) {
    const bool wrong = entry["template"] == "hasty";
    EXPECT_EQ(entry["outcome"] == "rejected", wrong) << entry;
    EXPECT_EQ(entry["milliseconds"] > 0, !wrong) << entry;
    if (wrong)
      EXPECT_NE(entry["detail"].get<std::string>().find("differs"), std::string::npos) << entry;
    if (entry["template"] == "plodding")
      EXPECT_EQ(entry["outcome"], "measured") << entry;
    if (entry["outcome"] == "winner")
      EXPECT_LT(entry["ratio_to_default"], 0.9) << entry;
  }
}

TEST_F(PlannerTest, AForcedTemplateIsComparedWithTheTileProgramToo) {
  options.templateDir = copyTemplates();
  write("too_wide", wrongTemplate());
  options.forceVariant = "too_wide";
  Status status = open(MissPolicy::kTune)->plan(spec, maxima, nullptr).status();
  ASSERT_FALSE(status.isOk()) << "it was compared with itself";
  EXPECT_NE(status.toString().find("differs from the reference"), std::string::npos) << status.toString();
}

TEST_F(PlannerTest, WithoutMemoryForTuningTheDefaultServes) {
#if defined(NSA_ADDRESS_SANITIZER) || defined(NSA_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer ends the process instead of refusing memory";
#endif
  spec.queryHeads = spec.kvHeads = 1 << 30; // 2^48 bytes of keys, more than any address space
  spec.qkDim = 256;
  maxima = {1, 64, 64, 256};
  auto engine = open(MissPolicy::kTune);
  Json plan = describe(*engine);
  EXPECT_EQ(plan["source"], "compiled");
  EXPECT_EQ(plan["tuned"], false);
  ASSERT_EQ(plan["fallbacks"].size(), 1u) << plan["fallbacks"];
  EXPECT_NE(plan["fallbacks"][0].get<std::string>().find("not tuned: out of memory"), std::string::npos) << plan;
  EXPECT_EQ(engine->tune(spec, maxima).status().code(), ErrorCode::kOutOfMemory) << "asked for, it is an error";
}

TEST_F(PlannerTest, AnEditedTemplateIsAMiss) {
  options.templateDir = copyTemplates();
  describe(*open(MissPolicy::kDefault));
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "database");
  write("attention", tile + "\n// another revision\n");
  const std::string hint = open(MissPolicy::kFail)->plan(spec, maxima, nullptr).status().error().hint;
  EXPECT_NE(hint.find("NSA_TEMPLATE_DIR=" + options.templateDir + " nsa tune"), std::string::npos) << hint;
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "compiled");
}

TEST_F(PlannerTest, WithoutItsTemplateAnOperatorFails) {
  options.templateDir = copyTemplates();
  templates.remove("tile/attention.tile");
  std::filesystem::remove_all(options.templateDir + "/cuda");
  Status status = open(MissPolicy::kDefault)->plan(spec, maxima, nullptr).status();
  EXPECT_FALSE(status.isOk());
  EXPECT_FALSE(status.error().toString().empty());
}

TEST_F(PlannerTest, ABrokenTemplateNamesItsLine) {
  options.templateDir = copyTemplates();
  replaceOnce(tile, "grid    block", "grit    block");
  write("attention", tile);
  Status status = open(MissPolicy::kDefault)->plan(spec, maxima, nullptr).status();
  ASSERT_FALSE(status.isOk());
  EXPECT_NE(status.toString().find("attention.tile:"), std::string::npos) << status.toString();
  EXPECT_NE(status.toString().find("grit"), std::string::npos) << status.toString();
}

TEST_F(PlannerTest, AForcedVariantLeavesNoChoiceBehind) {
  options.forceVariant = "attention";
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "compiled");
  options.forceVariant = "";
  EXPECT_EQ(open(MissPolicy::kFail)->plan(spec, maxima, nullptr).status().code(), ErrorCode::kCacheMiss);
}

TEST_F(PlannerTest, DumpedSourcesAreReadable) {
  options.dumpDir = folder.file("dump");
  describe(*open(MissPolicy::kDefault));
  size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(options.dumpDir)) {
    EXPECT_GT(entry.file_size(), 0u) << entry.path();
    EXPECT_EQ(entry.path().filename().string().find("window_attention_cpu_"), 0u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 5u) << "template, schedule, LLVM, manifest, image";
}

// A user who may write the folder knows the names beforehand.
TEST_F(PlannerTest, ALinkInTheDumpsFolderIsNotFollowed) {
  options.dumpDir = folder.file("dump");
  describe(*open(MissPolicy::kDefault));
  const std::string target = folder.write("target", "kept");
  std::filesystem::directory_iterator entries(options.dumpDir);
  const std::vector<std::filesystem::path> dumped(begin(entries), end(entries));
  for (const std::filesystem::path &path : dumped) {
    std::filesystem::remove(path);
    std::filesystem::create_symlink(target, path);
  }
  std::vector<std::string> log;
  options.log = [&](LogLevel, std::string_view, std::string_view message) { log.emplace_back(message); };
  options.cachePath = folder.file("other.db");
  EXPECT_EQ(describe(*open(MissPolicy::kDefault))["source"], "compiled");
  EXPECT_EQ(folder.read("target"), "kept");
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("not a regular file"), std::string::npos) << log[0];
}

TEST_F(PlannerTest, AFolderThatCannotBeWrittenAnyMoreOnlyWarns) {
  std::vector<std::string> log;
  options.log = [&](LogLevel, std::string_view, std::string_view message) { log.emplace_back(message); };
  dumpInto("dump");
  auto engine = open(MissPolicy::kDefault);
  spoilDumps();
  EXPECT_EQ(describe(*engine)["source"], "compiled");
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find(options.dumpDir), std::string::npos) << log[0];
}

} // namespace
