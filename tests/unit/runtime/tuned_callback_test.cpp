// The host's callback for better plans, with the real compiler on the CPU: what it is given and may do, when it comes,
// and what waits for it.
#include "tests/harness/no_environment.h"
#include "tests/harness/wait_until.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace nsa {
namespace {

class TunedCallback : public test::PlannerFixture {
protected:
  TunedCallback() { options.templateDir = copyTemplates(); }

  static bool settle(const Engine &engine) {
    return test::waitUntil([&] { return engine.counters().backgroundPending == 0; });
  }
  static PlanPointer planOf(Engine &engine, const Spec &spec, const Maxima &maxima) {
    Result<PlanPointer> plan = engine.plan(spec, maxima, nullptr);
    EXPECT_TRUE(plan.isOk()) << plan.status().toString();
    return plan ? std::move(*plan) : nullptr;
  }
  static Json describe(const PlanPointer &plan) { return plan ? Json::parse(plan->describe()) : Json(); }
  // A callback that is held in its first call until `mayGoOn`.
  void hold() {
    options.tuned = [this](const Spec &, const Maxima &) {
      ++calls;
      EXPECT_TRUE(test::waitUntil([&] { return mayGoOn.load(); }));
      if (beforeTheEnd)
        beforeTheEnd();
      hasGoneOn = true;
    };
  }

  std::atomic<int> calls = 0;
  std::atomic<bool> mayGoOn = false, hasGoneOn = false;
  std::function<void()> beforeTheEnd; // of the call
};

// A host that plans anew where it is told, and one whose own thread does.
TEST_F(TunedCallback, APlanThatIsMadeAnewHasTheWinner) {
  Engine *engine = nullptr;
  std::mutex mutex;
  PlanPointer fresh;
  std::optional<std::pair<Spec, Maxima>> told;
  std::thread::id on;
  options.tuned = [&](const Spec &asked, const Maxima &most) {
    PlanPointer plan = planOf(*engine, asked, most);
    std::lock_guard lock(mutex);
    fresh = std::move(plan);
    told = {asked, most};
    on = std::this_thread::get_id();
    ++calls;
  };
  EnginePointer owner = open(MissPolicy::kBackground);
  engine = owner.get();
  spec.scale = 0.5f;
  const PlanPointer first = planOf(*engine, spec, maxima);
  EXPECT_EQ(describe(first)["tuned"], false);
  Json inAnotherThread;
  std::jthread host([&] {
    EXPECT_TRUE(test::waitUntil([&] { return calls != 0; }));
    inAnotherThread = describe(planOf(*engine, spec, maxima));
  });
  host.join();
  ASSERT_TRUE(settle(*engine));
  std::lock_guard lock(mutex);
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(describe(fresh)["tuned"], true);
  EXPECT_EQ(describe(fresh)["source"], "memory");
  EXPECT_EQ(inAnotherThread["tuned"], true);
  EXPECT_EQ(describe(first)["tuned"], false) << "a plan that is held stays as it is";
  EXPECT_EQ(told->first.window, spec.window);
  EXPECT_EQ(told->first.scale, spec.scale);
  EXPECT_EQ(told->first.queryHeads, spec.queryHeads);
  EXPECT_EQ(told->second.seqlenQ, maxima.seqlenQ);
  EXPECT_EQ(told->second.seqlenK, maxima.seqlenK);
  EXPECT_NE(on, std::this_thread::get_id());
}

TEST_F(TunedCallback, WhatItMissesIsMadeAndTunedToo) {
  Engine *engine = nullptr;
  std::mutex mutex;
  std::vector<int64_t> lengths;
  options.tuned = [&](const Spec &asked, const Maxima &most) {
    {
      std::lock_guard lock(mutex);
      lengths.push_back(most.seqlenK);
    }
    if (most.seqlenK < 1000)
      planOf(*engine, asked, {most.batch, most.tokensQ, most.seqlenQ, 1000});
  };
  EnginePointer owner = open(MissPolicy::kBackground);
  engine = owner.get();
  planOf(*engine, spec, maxima);
  ASSERT_TRUE(test::waitUntil([&] {
    std::lock_guard lock(mutex);
    return lengths.size() == 2;
  }));
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(lengths, (std::vector<int64_t>{maxima.seqlenK, 1000}));
  EXPECT_EQ(describe(planOf(*engine, spec, {1, 96, 96, 1000}))["tuned"], true);
}

// What is asked is given back, although another gate is compiled for it.
TEST_F(TunedCallback, TheSpecIsTheHostsWhereTheEngineGivesTheGates) {
  std::optional<Gate> told;
  options.uniformGate = 1;
  options.tuned = [&](const Spec &asked, const Maxima &) {
    told = asked.gate;
    ++calls;
  };
  spec.op = Operator::kCombine;
  spec.gate = Gate::kSigmoid;
  auto engine = open(MissPolicy::kBackground);
  planOf(*engine, spec, maxima);
  ASSERT_TRUE(settle(*engine));
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(told, Gate::kSigmoid);
}

TEST_F(TunedCallback, NoneComesWhereNothingIsTunedInTheBackground) {
  options.tuned = [&](const Spec &, const Maxima &) { ++calls; };
  for (const MissPolicy policy : {MissPolicy::kDefault, MissPolicy::kTune}) {
    auto engine = open(policy);
    planOf(*engine, spec, maxima);
    EXPECT_TRUE(engine->tune(spec, maxima).isOk());
  }
  {
    auto engine = open(MissPolicy::kBackground); // it is stored, and tuned
    planOf(*engine, spec, maxima);
    EXPECT_TRUE(settle(*engine));
  }
  options.cachePath = folder.file("other.db");
  describe(planOf(*open(MissPolicy::kDefault), spec, maxima));
  options.compilerPath = "absent.so"; // which no loader finds
  auto engine = open(MissPolicy::kBackground);
  planOf(*engine, spec, maxima);
  EXPECT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundFailed, 1u);
  EXPECT_EQ(calls, 0);
}

// The kernels that could be tuned are better, whatever became of one.
TEST_F(TunedCallback, ItComesWhereOneOfSeveralKernelsFails) {
  templates.replace("tile/sel.tile", "l: [head] = 0,", "l: [head] = nan,");
  spec.op = Operator::kNsa;
  spec.selCount = 3;
  spec.selBlock = 32;
  maxima = {1, 128, 128, 128};
  options.tuned = [&](const Spec &, const Maxima &) { ++calls; };
  auto engine = open(MissPolicy::kBackground);
  planOf(*engine, spec, maxima);
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(engine->counters().backgroundFailed, 1u);
  EXPECT_EQ(calls, 1);
}

TEST_F(TunedCallback, WhatItThrowsIsLoggedAndTheTunerGoesOn) {
  std::mutex mutex;
  std::vector<std::string> log;
  options.log = [&](LogLevel, std::string_view, std::string_view message) {
    std::lock_guard lock(mutex);
    log.emplace_back(message);
  };
  options.tuned = [&](const Spec &, const Maxima &) {
    ++calls;
    throw std::runtime_error("the host is at lunch");
  };
  auto engine = open(MissPolicy::kBackground);
  planOf(*engine, spec, maxima);
  planOf(*engine, spec, {1, 96, 96, 1000});
  ASSERT_TRUE(settle(*engine));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(engine->counters().backgroundDone, 2u);
  std::lock_guard lock(mutex);
  ASSERT_EQ(log.size(), 2u);
  EXPECT_NE(log[0].find("callback for better plans failed"), std::string::npos) << log[0];
  EXPECT_NE(log[0].find("the host is at lunch"), std::string::npos) << log[0];
}

// Whose end waits for the callback, and afterwards none comes, though more is waiting to be tuned.
TEST_F(TunedCallback, AnEngineEndsWhenTheCallbackHasReturned) {
  hold();
  PlanPointer held; // the last one, which the callback gives back: it must not end the engine that calls it
  beforeTheEnd = [&] { held.reset(); };
  auto engine = open(MissPolicy::kBackground);
  held = planOf(*engine, spec, maxima);
  for (const int64_t length : {500, 1000, 2000})
    planOf(*engine, spec, {1, 96, 96, length});
  ASSERT_TRUE(test::waitUntil([&] { return calls != 0; }));
  std::atomic<bool> isDestroyed = false;
  std::jthread destroyer([&] {
    engine.reset();
    isDestroyed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(isDestroyed) << "the host is still in its callback";
  mayGoOn = true;
  destroyer.join();
  EXPECT_TRUE(hasGoneOn);
  EXPECT_EQ(calls, 1) << "three more plans were waiting";
}

// One whose plans are held is not gone, but it calls no more either.
TEST_F(TunedCallback, PlansThatAreHeldBringNoMoreCalls) {
  options.tuned = [&](const Spec &, const Maxima &) { ++calls; };
  auto engine = open(MissPolicy::kBackground);
  std::vector<PlanPointer> held;
  const auto begin = std::chrono::steady_clock::now();
  for (const int64_t length : {160, 500, 1000, 2000, 4000, 8000})
    held.push_back(planOf(*engine, spec, {1, 96, 96, length}));
  ASSERT_TRUE(test::waitUntil([&] { return calls >= 1; }));
  const auto one = std::chrono::steady_clock::now() - begin; // also compiles what all of them share
  engine.reset();
  const int before = calls;
  ASSERT_LT(before, 6) << "no tuning is left that could call";
  std::this_thread::sleep_for(2 * one);
  EXPECT_EQ(calls, before);
  held.clear();
  EXPECT_EQ(calls, before);
}

// Each in a process of its own, whose exit code tells how it ended.
class EndingHost : public TunedCallback {
protected:
  void expectEnd(const std::function<void()> &host) {
#ifdef NSA_THREAD_SANITIZER
    GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60); // what waits for itself waits for ever
      host();
      _exit(3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
};

// The end of the process waits for the callback, which plans what is missing meanwhile.
TEST_F(EndingHost, TheEndOfTheProcessWaitsForACallbackThatPlans) {
  expectEnd([&] {
    Engine *engine = nullptr, *other = nullptr; // left open, as by a host that ends at once
    options.tuned = [&](const Spec &, const Maxima &) {
      ++calls;
      (void)test::waitUntil([&] { return mayGoOn.load(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(100)); // the process is ending by now
      if (planOf(*engine, spec, {1, 96, 96, 1000}) && planOf(*other, spec, {1, 96, 96, 2000}))
        hasGoneOn = true;
    };
    engine = open(MissPolicy::kBackground).release();
    options.tuned = nullptr;
    other = open(MissPolicy::kBackground).release();
    planOf(*engine, spec, maxima);
    if (!test::waitUntil([&] { return calls != 0; }))
      _exit(4);
    static std::atomic<bool> *done = &hasGoneOn;
    std::atexit([] { // runs behind what the library has registered since
      if (!*done)
        _exit(5);
    });
    planOf(*engine, spec, {1, 96, 96, 500});
    mayGoOn = true;
    std::fclose(stdout); // the test program's own report is its parent's
    std::exit(0);
  });
}

TEST_F(EndingHost, TheCallbackMayEndTheProcess) {
  expectEnd([&] {
    options.tuned = [&](const Spec &, const Maxima &) {
      std::fclose(stdout);
      std::exit(0);
    };
    EnginePointer engine = open(MissPolicy::kBackground);
    planOf(*engine, spec, maxima);
    std::this_thread::sleep_for(std::chrono::seconds(50));
    _exit(4);
  });
}

// It is forbidden, so it is said; nothing is freed under the feet of the thread.
TEST_F(EndingHost, AnEngineThatIsDestroyedInItsCallbackIsLeftBehind) {
  expectEnd([&] {
    std::atomic<bool> isSaid = false;
    options.log = [&](LogLevel level, std::string_view, std::string_view message) {
      if (level == LogLevel::kError && message.find("destroyed in its own callback") != std::string_view::npos)
        isSaid = true;
    };
    EnginePointer engine;
    options.tuned = [&](const Spec &, const Maxima &) {
      (void)test::waitUntil([&] { return mayGoOn.load(); });
      engine.reset();
      ++calls;
    };
    engine = open(MissPolicy::kBackground);
    planOf(*engine, spec, maxima);
    planOf(*engine, spec, {1, 96, 96, 1000});
    mayGoOn = true;
    const bool isOver = test::waitUntil([&] { return calls != 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    _exit(isOver && isSaid && calls == 1 ? 0 : 4);
  });
}

} // namespace
} // namespace nsa
