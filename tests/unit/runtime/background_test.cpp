// Tuning in the background with the real compiler on the CPU: what serves meanwhile, that the next plan has the winner,
// that plans which are held stay as they are, and that nothing waits for it at the end.
#include "tests/harness/kept_kernels.h"
#include "tests/harness/no_environment.h"
#include "tests/harness/seed.h"
#include "tests/harness/wait_until.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace nsa {
namespace {

class BackgroundTest : public test::PlannerFixture {
protected:
  BackgroundTest() {
    options.templateDir = copyTemplates();
    options.log = [this](LogLevel level, std::string_view, std::string_view message) {
      std::lock_guard lock(mutex);
      log.push_back(std::string(logLevelName(level)) + " " + std::string(message));
    };
  }

  static bool settle(const Engine &engine) {
    return test::waitUntil([&] { return engine.counters().backgroundPending == 0; });
  }

  std::mutex mutex;
  std::vector<std::string> log;
};

TEST_F(BackgroundTest, TheNextPlanHasTheWinnerAndTheFirstStaysAsItIs) {
  auto engine = open(MissPolicy::kBackground);
  Result<PlanPointer> first = engine->plan(spec, maxima, nullptr);
  ASSERT_TRUE(first.isOk()) << first.status().toString();
  EXPECT_EQ(Json::parse((*first)->describe())["launches"][0]["step"], "compiled");
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundDone, 1u);
  EXPECT_EQ(engine->counters().backgroundFailed, 0u);
  EXPECT_EQ(engine->counters().kernelsMeasured, 4u);
  EXPECT_GT(engine->counters().tuneMs, 0);
  Result<PlanPointer> second = engine->plan(spec, maxima, nullptr);
  const Json winner = Json::parse((*second)->describe());
  EXPECT_EQ(winner["source"], "memory");
  EXPECT_EQ(winner["tuned"], true);
  EXPECT_EQ(winner["launches"][0]["step"], "exact");
  EXPECT_EQ(Json::parse((*first)->describe())["tuned"], false);
  // The winner is stored, with its evidence, and another engine has nothing to tune.
  auto later = open(MissPolicy::kBackground);
  EXPECT_EQ(describe(*later)["source"], "database");
  EXPECT_EQ(describe(*later)["tuned"], true);
  EXPECT_EQ(later->counters().backgroundPending + later->counters().backgroundDone, 0u);
}

// What is stored for other lengths serves without a compilation of the caller's.
TEST_F(BackgroundTest, ANeighbourServesMeanwhile) {
  describe(*open(MissPolicy::kDefault));
  maxima.seqlenK = 1000;
  auto engine = open(MissPolicy::kBackground);
  const Json plan = describe(*engine);
  EXPECT_EQ(plan["launches"][0]["step"], "nearest");
  EXPECT_EQ(plan["milliseconds"]["compile"], 0);
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(describe(*engine)["launches"][0]["step"], "exact");
  EXPECT_EQ(describe(*engine)["tuned"], true);
}

TEST_F(BackgroundTest, AnUnmeasuredKernelOfItsOwnIsTunedToo) {
  describe(*open(MissPolicy::kDefault));
  auto engine = open(MissPolicy::kBackground);
  EXPECT_EQ(describe(*engine)["source"], "database");
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(describe(*engine)["tuned"], true);
}

TEST_F(BackgroundTest, EachProblemIsTunedOnceWhoeverAsks) {
  auto one = open(MissPolicy::kBackground), other = open(MissPolicy::kBackground);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] {
        Result<PlanPointer> plan = (i % 2 ? one : other)->plan(spec, maxima, nullptr);
        EXPECT_TRUE(plan.isOk()) << plan.status().toString();
      });
  }
  ASSERT_TRUE(settle(*one) && settle(*other));
  EXPECT_EQ(describe(*one)["tuned"], true);
  EXPECT_EQ(describe(*other)["tuned"], true);
  EXPECT_EQ(one->counters().backgroundDone + other->counters().backgroundDone, 2u);
  EXPECT_EQ(one->counters().kernelsMeasured + other->counters().kernelsMeasured, 4u) << "one of them tuned, for both";
}

TEST_F(BackgroundTest, PlansAreMadeAndRunWhileItTunes) {
  auto engine = open(MissPolicy::kBackground);
  std::vector<PlanPointer> held;
  const int64_t lengths[] = {64, 128, 256, 512};
  size_t tuned = 0;
  do {
    for (const int64_t length : lengths) {
      Result<PlanPointer> plan = engine->plan(spec, {1, 64, 64, length}, nullptr);
      ASSERT_TRUE(plan.isOk()) << plan.status().toString();
      held.push_back(std::move(*plan));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  } while (engine->counters().backgroundPending != 0);
  for (const int64_t length : lengths) {
    Result<PlanPointer> plan = engine->plan(spec, {1, 64, 64, length}, nullptr);
    tuned += Json::parse((*plan)->describe())["tuned"] == true;
  }
  EXPECT_EQ(tuned, 4u);
  EXPECT_EQ(engine->counters().backgroundDone, 4u);
  for (PlanPointer &plan : held)
    EXPECT_FALSE(plan->describe().empty());
}

TEST_F(BackgroundTest, AFailureIsSaidOnceAndWhatServedServesOn) {
  describe(*open(MissPolicy::kDefault));
  options.compilerPath = "absent.so"; // which no loader finds
  auto engine = open(MissPolicy::kBackground);
  EXPECT_EQ(describe(*engine)["source"], "database");
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundFailed, 1u);
  EXPECT_EQ(describe(*engine)["tuned"], false);
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundFailed, 1u) << "it is not tried again";
  std::lock_guard lock(mutex);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_TRUE(log[0].starts_with("warning tuning in the background")) << log[0];
}

// The others have their winners, those before it and those after it.
TEST_F(BackgroundTest, AKernelThatCannotBeTunedTakesNothingFromTheOthers) {
  // Not a number: no candidate can be told to be right, so none wins.
  templates.replace("tile/sel.tile", "l: [head] = 0,", "l: [head] = nan,");
  spec.op = Operator::kNsa;
  spec.selCount = 3;
  spec.selBlock = 32;
  maxima = {1, 128, 128, 128};
  auto engine = open(MissPolicy::kBackground);
  describe(*engine);
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundFailed, 1u);
  std::map<std::string, std::string> steps;
  const Json plan = describe(*engine);
  for (const Json &launch : plan["launches"])
    steps[launch["operator"].get<std::string>()] = launch["step"].get<std::string>();
  EXPECT_EQ(steps, (std::map<std::string, std::string>{{"compress", "exact"},
                                                       {"cmp", "exact"},
                                                       {"select", "exact"},
                                                       {"sel", "compiled"},
                                                       {"window", "exact"},
                                                       {"combine", "exact"}}));
}

// The tuner is held in its first compilation, of a kernel that two may tune at once, as its template is forced. What
// the host has tuned meanwhile is of another text of the template.
TEST_F(BackgroundTest, WhatTheHostTunesMeanwhileStays) {
  spec.op = Operator::kNsa;
  spec.branches = kBranchWin;
  maxima = {1, 128, 128, 128};
  {
    auto before = open(MissPolicy::kDefault);
    for (const Step &step : stepsOf(spec, maxima))
      if (step.role != Role::kWin) {
        const std::string problem = Problem::make(step.spec, step.maxima).key();
        const Status tuned = before->tuneKernel(spec, maxima, problem, 20).status();
        ASSERT_TRUE(tuned.isOk()) << tuned.toString();
      }
  }
  options.forceVariant = "attention";
  dumpInto("dump");
  std::atomic<bool> isHeld = false, mayGoOn = false;
  options.log = [&, caller = std::this_thread::get_id()](LogLevel, std::string_view, std::string_view message) {
    if (std::this_thread::get_id() == caller || message.find(options.dumpDir) == std::string_view::npos)
      return;
    isHeld = true;
    (void)test::waitUntil([&] { return mayGoOn.load(); });
  };
  std::atomic<int> told = 0;
  options.tuned = [&](const Spec &, const Maxima &) { ++told; };
  auto engine = open(MissPolicy::kBackground);
  spoilDumps();
  const auto contentOf = [&](const std::string &op) {
    const Json plan = describe(*engine);
    for (const Json &launch : plan["launches"])
      if (launch["operator"] == op)
        return launch["content"].get<std::string>();
    return std::string();
  };
  const std::string before = contentOf("combine");
  ASSERT_TRUE(test::waitUntil([&] { return isHeld.load(); }));
  EXPECT_EQ(engine->counters().backgroundPending, 1u);
  templates.write("tile/combine.tile", templates.read("tile/combine.tile") + "// another revision\n");
  const Status tuned = engine->tune(spec, maxima).status();
  EXPECT_TRUE(tuned.isOk()) << tuned.toString();
  const std::string combine = contentOf("combine"), window = contentOf("window");
  EXPECT_NE(combine, before);
  mayGoOn = true;
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(contentOf("combine"), combine);
  EXPECT_EQ(contentOf("window"), window);
  EXPECT_EQ(told, 0) << "no plan is better than the host's own";
}

// The tuner is held in its first compilation, with all configurations of the tile program before it.
TEST_F(BackgroundTest, AnEngineEndsWithoutWaitingForIt) {
  options.templateDir = "";
  options.tuneBudgetSeconds = 600;
  options.compileThreads = 1;
  dumpInto("dump");
  std::atomic<bool> isHeld = false, mayGoOn = false, hasGoneOn = false;
  std::atomic<int> compiled = 0;
  options.log = [&, caller = std::this_thread::get_id()](LogLevel, std::string_view, std::string_view message) {
    if (std::this_thread::get_id() == caller || message.find(options.dumpDir) == std::string_view::npos)
      return;
    ++compiled;
    isHeld = true;
    (void)test::waitUntil([&] { return mayGoOn.load(); });
    hasGoneOn = true;
  };
  auto engine = open(MissPolicy::kBackground);
  spoilDumps();
  Result<PlanPointer> plan = engine->plan(spec, {1, 4096, 4096, 4096}, nullptr);
  ASSERT_TRUE(plan.isOk()) << plan.status().toString();
  for (int32_t group = 2; group < 8; ++group) {
    spec.queryHeads = 2 * group;
    EXPECT_TRUE(engine->plan(spec, {1, 4096, 4096, 4096}, nullptr).isOk());
  }
  EXPECT_GE(engine->counters().backgroundPending, 6u);
  ASSERT_TRUE(test::waitUntil([&] { return isHeld.load(); }));
  engine.reset();
  EXPECT_FALSE(hasGoneOn) << "a plan is held, so nothing waits";
  mayGoOn = true;
  plan->reset(); // the last one: now the thread must be over
  EXPECT_TRUE(hasGoneOn);
  EXPECT_LE(compiled, 2) << "what was going on, and what its thread had taken already";
}

// Leaves an engine open until the process ends. It stays reachable, so that the address sanitizer does not take it for
// lost.
void leaveOpen(EnginePointer &engine) {
  [[maybe_unused]] static Engine *volatile left;
  left = engine.release();
}

// A host that ends as its main function does, with everything still open and the tuner at work.
TEST_F(BackgroundTest, AProcessEndsWithoutWaitingForIt) {
#ifdef NSA_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
  options.templateDir = "";
  options.tuneBudgetSeconds = 600;
  maxima = {1, 65536, 65536, 65536}; // a tuning takes seconds, even if no kernel is compiled
  for (const int milliseconds : {0, 30, 200, 600}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60); // ends a child that waits for its tuning
      options.missPolicy = MissPolicy::kBackground;
      Result<EnginePointer> engine = Engine::open(options, test::noVariable);
      if (!engine || !(*engine)->plan(spec, maxima, nullptr).isOk())
        _exit(3);
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      if ((*engine)->counters().backgroundPending != 1)
        _exit(4);
      leaveOpen(*engine);
      std::fclose(stdout); // the test program's own report is its parent's
      std::exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << " after " << milliseconds << " ms";
    EXPECT_EQ(WEXITSTATUS(status), 0) << milliseconds;
    std::filesystem::remove(options.cachePath);
  }
}

constexpr const char *kChildFolder = "NSA_TEST_CHILD_FOLDER", *kChildDelay = "NSA_TEST_CHILD_DELAY";

// The process of the next test: its tuner compiles what nothing in it has compiled before, while it ends.
TEST_F(BackgroundTest, DISABLED_EndsInTheFirstCompilation) {
  const char *cache = std::getenv(kChildFolder), *delay = std::getenv(kChildDelay);
  ASSERT_TRUE(cache && delay) << "the next test starts this one";
  alarm(60);
  options.cachePath = cache;
  options.templateDir = ""; // the library's own, all of whose choices are to be compiled
  options.tuneBudgetSeconds = 600;
  maxima.seqlenK = 1000;
  EnginePointer engine = open(MissPolicy::kBackground);
  const Json plan = describe(*engine);
  if (plan["launches"][0]["step"] != "nearest" || engine->counters().backgroundPending != 1)
    _exit(3);
  std::this_thread::sleep_for(std::chrono::microseconds(std::strtol(delay, nullptr, 10)));
  if (engine->counters().backgroundPending != 1)
    _exit(4);
  leaveOpen(engine);
  std::exit(0);
}

// A compiler makes objects when it first compiles, and has them destroyed at the end: not while a thread uses them.
TEST_F(BackgroundTest, AProcessMayEndInItsFirstCompilation) {
  options.templateDir = "";
  describe(*open(MissPolicy::kDefault)); // serves the child
  const int ends = test::repeats("NSA_TEST_ENDS", 8);
  for (int i = 0; i < ends; ++i) {
    const std::string delay = std::to_string(120000 / ends * i); // the first compilation, and what comes before
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const test::KeptKernels none("");
      setenv(kChildFolder, options.cachePath.c_str(), 1);
      setenv(kChildDelay, delay.c_str(), 1);
      for (const char *name : {"GTEST_FILTER", "GTEST_OUTPUT", "GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS"})
        unsetenv(name);
      (void)!std::freopen("/dev/null", "w", stdout);
      execl("/proc/self/exe", "test", "--gtest_also_run_disabled_tests",
            "--gtest_filter=BackgroundTest.DISABLED_EndsInTheFirstCompilation", nullptr);
      _exit(127);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << " after " << delay << " us";
    EXPECT_EQ(WEXITSTATUS(status), 0) << delay;
  }
}

// The child's engine tunes by itself, whatever the parent's thread held at that moment.
TEST_F(BackgroundTest, AForksChildTunesByItself) {
#ifdef NSA_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
  describe(*open(MissPolicy::kDefault));
  auto engine = open(MissPolicy::kBackground);
  describe(*engine);
  ASSERT_TRUE(settle(*engine)); // LLVM's locks stay as a thread of the parent held them
  spec.qkDim = 16;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    Result<EnginePointer> own = engine->openInChild();
    if (!own || !(*own)->plan(spec, maxima, nullptr).isOk())
      _exit(3);
    if (!settle(**own))
      _exit(4);
    const bool tuned = (*own)->counters().backgroundDone == 1;
    own->reset();
    _exit(tuned ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
} // namespace nsa
