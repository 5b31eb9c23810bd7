// The callback for better plans through the public headers, in C and in C++, with the real compiler on the CPU.
#include "runtime/include/nsa/nsa.hpp"
#include "tests/harness/template_folder.h"
#include "tests/harness/wait_until.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <string>

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
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = spec.vDim = 32;
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
  engine.emplace(options, [&](const nsa::Spec &asked, const nsa::Maxima &most) {
    nsa::Plan plan = engine->plan(asked, most);
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
  const auto count = [&](const nsa::Spec &, const nsa::Maxima &) { ++calls; };
  nsa::Engine engine(options, count);
  engine.plan(spec, maxima);
  nsa::Engine moved = std::move(engine);
  EXPECT_TRUE(nsa::test::waitUntil([&] { return calls == 1; }));
  moved = nsa::Engine(options, count);
  moved.plan(spec, maxima);
  EXPECT_TRUE(nsa::test::waitUntil([&] { return calls == 2; }));
}

// All fields come back as a C host wrote them.
TEST_F(TunedWrapper, TheStructsAreThoseOfTheRequest) {
  struct Told {
    nsa_spec spec;
    nsa_maxima maxima;
    std::atomic<bool> isThere;
  } told = {};
  options.tuned = [](void *user, const nsa_spec *asked, const nsa_maxima *most) {
    auto *to = static_cast<Told *>(user);
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
  EXPECT_EQ(nsa_plan_create(engine, &asked, &most, nullptr, &plan, &error), NSA_OK) << error.message;
  EXPECT_TRUE(nsa::test::waitUntil([&] { return told.isThere.load(); }));
  EXPECT_EQ(std::memcmp(&told.spec, &asked, sizeof asked), 0);
  EXPECT_EQ(std::memcmp(&told.maxima, &most, sizeof most), 0);
  const nsa_spec again = nsa::Spec::of(told.spec).c();
  EXPECT_EQ(std::memcmp(&again, &asked, sizeof asked), 0);
  nsa_plan_destroy(plan);
  nsa_engine_destroy(engine);
}

} // namespace
