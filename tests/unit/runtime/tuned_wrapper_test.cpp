// The callback for better plans through the public headers, in C and in C++, with the real compiler on the CPU.
#include "runtime/include/nsa/nsa.hpp"
#include "tests/harness/template_folder.h"
#include "tests/harness/wait_until.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

class TunedWrapper : public testing::Test {
protected:
  TunedWrapper() {
    templates.copyFrom(NSA_TEMPLATES);
    templates.keepFewChoices();
    options.device = "cpu";
    options.cache_path = ":memory:";
    options.cache_packs = "none";
    options.compiler_path = NSA_COMPILER_LIBRARY;
    options.template_dir = folder.c_str();
    options.miss_policy = NSA_MISS_BACKGROUND;
    spec.op = NSA_OP_WINDOW;
    spec.dtype = NSA_FP32;
    spec.query_heads = 4;
    spec.kv_heads = 2;
    spec.qk_dim = spec.v_dim = 32;
    spec.window = 24;
  }
  static bool isTuned(const nsa::Plan &plan) { return plan.describe().find("\"tuned\": true") != std::string::npos; }

  nsa::test::TemplateFolder templates;
  const std::string folder = templates.path();
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  nsa::Spec spec;
  const nsa::Maxima maxima{2, 96, 160};
};

TEST_F(TunedWrapper, APlanThatIsMadeAnewInTheCallbackIsTuned) {
  std::mutex mutex;
  std::optional<nsa::Plan> fresh;
  std::optional<nsa::Engine> engine;
  std::optional<nsa::Maxima> told;
  engine.emplace(options, [&](nsa::EngineView own, const nsa::Spec &asked, const nsa::Maxima &most) {
    nsa::Plan plan = own.plan(asked, most);
    std::lock_guard lock(mutex);
    fresh = std::move(plan);
    told = most;
  });
  const nsa::Plan first = engine->plan(spec, maxima);
  EXPECT_FALSE(isTuned(first)) << first.describe();
  ASSERT_TRUE(nsa::test::waitUntil([&] {
    std::lock_guard lock(mutex);
    return fresh.has_value();
  }));
  EXPECT_TRUE(isTuned(*fresh)) << fresh->describe();
  EXPECT_EQ(told->batch, maxima.batch);
  EXPECT_EQ(told->tokensQ, 2 * 96);
  EXPECT_EQ(told->seqlenQ, maxima.seqlenQ);
  EXPECT_EQ(told->seqlenK, maxima.seqlenK);
  engine.reset(); // before the plans
}

// The function goes with the engine that calls it, wherever both are moved.
TEST_F(TunedWrapper, AnEngineIsMovedWithItsCallback) {
  std::atomic<int> calls = 0;
  const auto count = [&](nsa::EngineView, const nsa::Spec &, const nsa::Maxima &) { ++calls; };
  nsa::Engine engine(options, count);
  engine.plan(spec, maxima);
  nsa::Engine moved = std::move(engine);
  EXPECT_TRUE(nsa::test::waitUntil([&] { return calls == 1; }));
  moved = nsa::Engine(options, count);
  moved.plan(spec, maxima);
  EXPECT_TRUE(nsa::test::waitUntil([&] { return calls == 2; }));
}

// A callback plans while the host assigns or destroys the object that it opened the engine with.
TEST_F(TunedWrapper, TheCallbackPlansWhileItsEngineIsDestroyed) {
  enum class End { kReset, kAssigned };
  for (const End end : {End::kReset, End::kAssigned}) {
    std::atomic<bool> isCalled = false, isEnding = false;
    std::atomic<int> planned = 0;
    std::optional<nsa::Engine> engine;
    engine.emplace(options, [&](nsa::EngineView own, const nsa::Spec &asked, const nsa::Maxima &most) {
      isCalled = true;
      (void)nsa::test::waitUntil([&] { return isEnding.load(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(100)); // the engine's end waits by now
      planned += isTuned(own.plan(asked, most));
    });
    engine->plan(spec, maxima);
    ASSERT_TRUE(nsa::test::waitUntil([&] { return isCalled.load(); }));
    isEnding = true;
    if (end == End::kReset)
      engine.reset();
    else
      *engine = nsa::Engine(options);
    EXPECT_EQ(planned, 1) << static_cast<int>(end);
  }
}

TEST_F(TunedWrapper, AnEmptyFunctionIsNoCallback) {
  std::atomic<int> calls = 0;
  options.tuned = [](void *user, nsa_engine *, const nsa_spec *, const nsa_maxima *) {
    ++*static_cast<std::atomic<int> *>(user);
  };
  options.tuned_user = &calls;
  nsa::Engine engine(options, {});
  engine.plan(spec, maxima);
  EXPECT_TRUE(nsa::test::waitUntil([&] { return calls == 1; })) << "the options' own callback stays";
  options.tuned = nullptr;
  nsa::Engine without(options, {});
  without.plan(spec, maxima);
  EXPECT_TRUE(nsa::test::waitUntil([&] { return without.stats().background_done == 1; }));
}

// It is forbidden, and the log says so; the function that runs is not freed. The engine is left behind, so a process of
// its own does it.
TEST_F(TunedWrapper, AFunctionThatDestroysItsEngineIsKeptUntilItReturns) {
#ifdef NSA_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    auto token = std::make_shared<int>(1);
    const std::weak_ptr<int> watched = token;
    std::atomic<bool> mayEnd = false, isKept = false, isDone = false;
    std::optional<nsa::Engine> engine;
    options.log = [](void *, nsa_log_level, const char *, const char *) {};
    engine.emplace(options, [&, token](nsa::EngineView, const nsa::Spec &, const nsa::Maxima &) {
      (void)nsa::test::waitUntil([&] { return mayEnd.load(); });
      engine.reset();
      isKept = !watched.expired();
      isDone = true;
    });
    token.reset();
    engine->plan(spec, maxima);
    mayEnd = true;
    if (!nsa::test::waitUntil([&] { return isDone.load(); }))
      _exit(2);
    if (!isKept)
      _exit(3);
    _exit(nsa::test::waitUntil([&] { return watched.expired(); }) ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "3: the function was freed; 4: it was never freed";
}

// All fields come back as a C host wrote them.
TEST_F(TunedWrapper, TheStructsAreThoseOfTheRequest) {
  struct Told {
    nsa_engine *engine;
    nsa_spec spec;
    nsa_maxima maxima;
    std::atomic<bool> isThere;
  } told = {};
  options.tuned = [](void *user, nsa_engine *own, const nsa_spec *asked, const nsa_maxima *most) {
    auto *to = static_cast<Told *>(user);
    to->engine = own;
    to->spec = *asked;
    to->maxima = *most;
    to->isThere = true;
  };
  options.tuned_user = &told;
  nsa_engine *engine = nullptr;
  nsa_error error = {};
  ASSERT_EQ(nsa_engine_create(&options, &engine, &error), NSA_OK) << error.message;
  nsa_spec asked;
  nsa_spec_init(&asked);
  asked.op = NSA_OP_NSA;
  asked.dtype = NSA_FP16;
  asked.layout = NSA_LAYOUT_PACKED;
  asked.query_heads = 4;
  asked.kv_heads = 2;
  asked.qk_dim = 32;
  asked.v_dim = 16;
  asked.window = 33;
  asked.scale = 0.25f;
  asked.cmp_block = 16;
  asked.cmp_stride = 8;
  asked.cmp_kind = NSA_CMP_MLP;
  asked.mlp_hidden = 8;
  asked.mlp_activation = NSA_SILU;
  asked.sel_block = 32;
  asked.sel_count = 5;
  asked.init_blocks = 2;
  asked.local_blocks = 3;
  asked.gate = NSA_GATE_SOFTMAX;
  asked.gate_per_group = 1;
  asked.branches = NSA_BRANCH_CMP;
  nsa_maxima most = NSA_INIT(nsa_maxima);
  most.max_batch = 2;
  most.max_tokens_q = 100;
  most.max_seqlen_q = 60;
  most.max_seqlen_k = 70;
  nsa_plan *plan = nullptr;
  EXPECT_EQ(nsa_plan_create_with(engine, &asked, &most, nullptr, nullptr, &plan, &error), NSA_OK) << error.message;
  EXPECT_TRUE(nsa::test::waitUntil([&] { return told.isThere.load(); }));
  EXPECT_EQ(told.engine, engine);
  EXPECT_EQ(std::memcmp(&told.spec, &asked, sizeof asked), 0);
  EXPECT_EQ(std::memcmp(&told.maxima, &most, sizeof most), 0);
  const nsa_spec again = nsa::Spec(told.spec);
  EXPECT_EQ(std::memcmp(&again, &asked, sizeof asked), 0);
  // A library with more fields, and one with fewer.
  struct {
    nsa_spec spec;
    int32_t later[8];
  } larger = {asked, {}};
  larger.spec.size = sizeof larger;
  EXPECT_EQ(nsa::Spec(larger.spec).size, sizeof(nsa_spec));
  nsa_spec smaller = asked;
  smaller.size = offsetof(nsa_spec, rotary_dims);
  smaller.rotary_dims = 99; // lies behind it
  EXPECT_EQ(nsa::Spec(smaller).size, sizeof(nsa_spec));
  EXPECT_EQ(nsa::Spec(smaller).window, asked.window);
  EXPECT_EQ(nsa::Spec(smaller).rotary_dims, 0);
  nsa_plan_destroy(plan);
  nsa_engine_destroy(engine);
}

} // namespace
