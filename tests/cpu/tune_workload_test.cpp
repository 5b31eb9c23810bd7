// nsa_tune_workload: a host tunes a workload within a budget, later engines that never compile are served, and what
// breaks a rule stores nothing.
#include "runtime/include/nsa/nsa.hpp"
#include "tests/cpu/tune_host.h"
#include "tests/harness/template_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>
#include <string>

namespace nsa {
namespace {

const std::string kTiny = test::readFile(NSA_TEST_DATA "/tune_tiny.json");
// One kernel, of attention over a window.
constexpr const char *kWindow =
    R"({"name": "one", "plans": [{"op": "window", "batch": 1, "seqlen_q": 64, "seqlen_k": 64,
        "config": {"dtype": "fp32", "query_heads": 2, "kv_heads": 1, "qk_dim": 16, "window": 32}}]})";
// Of what has no gradient.
constexpr const char *kDecode =
    R"({"name": "steps", "plans": [{"op": "decode", "batch": 1, "seqlen_q": 1, "seqlen_k": 64,
        "config": {"dtype": "fp32", "query_heads": 2, "kv_heads": 1, "qk_dim": 16}}]})";

class TuneWorkload : public ::testing::Test {
public:
  void SetUp() override {
    templates.copyFrom(NSA_TEMPLATES);
    templates.keepFewChoices();
  }

  nsa_engine_options options(nsa_miss_policy policy) const {
    nsa_engine_options options = NSA_INIT(nsa_engine_options);
    options.device = "cpu";
    options.cache_path = database.c_str();
    options.cache_packs = "none";
    options.template_dir = folder.c_str();
    options.cpu_threads = 1;
    options.miss_policy = policy;
    return options;
  }
  bool isAnythingStored() const { return std::filesystem::exists(database); }

  // The error of a call that breaks a rule. Nothing is stored.
  std::string errorOf(const char *workload, nsa_tune_options tuning = NSA_INIT(nsa_tune_options),
                      nsa_miss_policy policy = NSA_MISS_DEFAULT) const {
    const api::Engine engine(options(policy));
    nsa_error error{};
    char *json = nullptr;
    EXPECT_EQ(nsa_tune_workload(engine.handle(), workload, &tuning, nullptr, &json, &error), NSA_INVALID_ARGUMENT);
    EXPECT_EQ(json, nullptr);
    EXPECT_FALSE(isAnythingStored());
    return error.message;
  }
  void expectError(const std::string &error, const std::string &part) const {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }

  test::TemplateFolder templates;
  test::Scratch scratch;
  const std::string folder = templates.path(), database = scratch.file("k.db");
};

TEST_F(TuneWorkload, AHostInCTunesAndAnEngineThatNeverCompilesIsServed) {
  tune_host_calls calls{};
  nsa_tune_counts counts{};
  nsa_error error{};
  ASSERT_EQ(tune_in_c(database.c_str(), folder.c_str(), kTiny.c_str(), 600, &calls, &counts, &error), NSA_OK)
      << error.message;
  EXPECT_EQ(counts.kernels, 12u);
  EXPECT_EQ(counts.tuned + counts.made, counts.kernels);
  EXPECT_EQ(counts.stored + counts.failed + counts.left + counts.stopped, 0u);
  EXPECT_GT(counts.tuned, 0u);
  EXPECT_GT(counts.seconds, 0);
  EXPECT_EQ(calls.calls, 2 * counts.kernels) << "when it begins, and when it is done";
  EXPECT_EQ(calls.named, calls.calls);
  EXPECT_EQ(calls.events[NSA_TUNE_BEGINS], counts.kernels);
  EXPECT_EQ(calls.events[NSA_TUNE_TUNED], counts.tuned);
  EXPECT_EQ(calls.events[NSA_TUNE_MADE], counts.made);
  EXPECT_EQ(calls.events[NSA_TUNE_FAILED] + calls.events[NSA_TUNE_LEFT] + calls.faults, 0u);
  EXPECT_EQ(calls.most_done, counts.kernels);
  EXPECT_EQ(calls.total, counts.kernels);

  const api::Engine engine(options(NSA_MISS_FAIL));
  nsa_spec c = NSA_INIT(nsa_spec); // of tune_tiny.json
  nsa_spec_init(&c);
  c.op = NSA_OP_NSA;
  c.dtype = NSA_FP32;
  c.query_heads = 2;
  c.kv_heads = 1;
  c.qk_dim = c.v_dim = 16;
  c.window = 32;
  c.cmp_block = 8;
  c.cmp_stride = 4;
  c.sel_block = 16;
  c.sel_count = 4;
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  maxima.max_batch = 1;
  maxima.max_seqlen_q = maxima.max_seqlen_k = 128;
  nsa_plan *plan = nullptr;
  ASSERT_EQ(nsa_plan_create_with(engine.handle(), &c, &maxima, nullptr, nullptr, &plan, &error), NSA_OK)
      << error.message;
  const nlohmann::json described = nlohmann::json::parse(nsa_plan_describe(plan));
  EXPECT_EQ(described.value("source", ""), "database");
  EXPECT_TRUE(described.value("tuned", false));
  nsa_plan_destroy(plan);

  ASSERT_EQ(tune_in_c(database.c_str(), folder.c_str(), kTiny.c_str(), 600, &calls, &counts, &error), NSA_OK);
  EXPECT_EQ(counts.stored, counts.kernels) << "nothing is tuned twice";
}

TEST_F(TuneWorkload, TheCallbackEndsTheRunAndALaterRunGoesOn) {
  tune_host_calls calls{};
  calls.stop_after = 2; // the first kernel is done
  nsa_tune_counts counts{};
  nsa_error error{};
  ASSERT_EQ(tune_in_c(database.c_str(), folder.c_str(), kTiny.c_str(), 0, &calls, &counts, &error), NSA_OK);
  EXPECT_EQ(counts.stopped, 1u);
  EXPECT_EQ(counts.tuned + counts.made, 1u);
  EXPECT_EQ(counts.left, counts.kernels - 1);
  EXPECT_EQ(calls.calls, 2u) << "nothing further begins";
  calls = {};
  calls.stop_after = 1; // before a kernel begins
  ASSERT_EQ(tune_in_c(database.c_str(), folder.c_str(), kTiny.c_str(), 0, &calls, &counts, &error), NSA_OK);
  EXPECT_EQ(counts.stored, 1u) << "what was tuned before stays";
  EXPECT_EQ(counts.left, counts.kernels - 1);
}

TEST_F(TuneWorkload, TheCallbackHearsOfFailures) {
  templates.replace("tile/combine.tile", "sequences.present", "sequences.absent");
  tune_host_calls calls{};
  nsa_tune_counts counts{};
  nsa_error error{};
  ASSERT_EQ(tune_in_c(database.c_str(), folder.c_str(), kTiny.c_str(), 0, &calls, &counts, &error), NSA_OK);
  EXPECT_GT(counts.failed, 0u);
  EXPECT_EQ(calls.events[NSA_TUNE_FAILED], counts.failed);
  EXPECT_EQ(calls.events[NSA_TUNE_TUNED], counts.tuned);
  EXPECT_EQ(calls.faults, 0u);
  EXPECT_EQ(calls.status, NSA_COMPILE_FAILED);
  expectError(calls.error, "combine");
}

TEST_F(TuneWorkload, ASpecIsTunedWithCounts) {
  const api::Engine engine(options(NSA_MISS_DEFAULT));
  api::Spec spec;
  spec.dtype = NSA_FP32;
  spec.query_heads = 2;
  spec.kv_heads = 1;
  spec.qk_dim = spec.v_dim = 16;
  spec.window = 32;
  nsa_tune_counts counts = NSA_INIT(nsa_tune_counts);
  nsa_tune_options tuning = NSA_INIT(nsa_tune_options);
  tuning.kernel_seconds = NSA_OFF; // all few candidates
  const nlohmann::json report = nlohmann::json::parse(engine.tune(spec, {1, 64, 64}, tuning, &counts));
  EXPECT_EQ(counts.kernels, 1u);
  EXPECT_EQ(counts.tuned, 1u);
  EXPECT_GT(counts.seconds, 0);
  EXPECT_EQ(report["tuned"], true);
  const std::string problem = report["problem"];
  tuning.kernel = problem.c_str();
  EXPECT_EQ(nlohmann::json::parse(engine.tune(spec, {1, 64, 64}, tuning, &counts))["problem"], problem);
  EXPECT_EQ(counts.kernels, 1u);
  EXPECT_EQ(api::Engine(options(NSA_MISS_FAIL)).plan(spec, {1, 64, 64}).info().tuned, 1);
}

TEST_F(TuneWorkload, ABudgetCutsTheRun) {
  const api::Engine engine(options(NSA_MISS_DEFAULT));
  nsa_tune_options tuning = NSA_INIT(nsa_tune_options);
  tuning.budget_seconds = 1e-6;
  nsa_tune_counts counts = NSA_INIT(nsa_tune_counts);
  const nlohmann::json report = nlohmann::json::parse(engine.tuneWorkload(kTiny, tuning, &counts));
  EXPECT_EQ(counts.left, 12u);
  EXPECT_EQ(counts.stopped, 0u);
  EXPECT_EQ(report["counts"]["left"], 12);
  EXPECT_EQ(report["kernels"].size(), 12u);
}

TEST_F(TuneWorkload, ADryRunTellsAndStoresNothing) {
  const api::Engine engine(options(NSA_MISS_DEFAULT));
  nsa_tune_options tuning = NSA_INIT(nsa_tune_options);
  tuning.dry_run = 1;
  tuning.operators = "window,cmp";
  nsa_tune_counts counts = NSA_INIT(nsa_tune_counts);
  const nlohmann::json plan = nlohmann::json::parse(engine.tuneWorkload(kTiny, tuning, &counts));
  EXPECT_EQ(counts.left, counts.kernels);
  EXPECT_EQ(plan["kernels"].size(), counts.kernels);
  for (const nlohmann::json &kernel : plan["kernels"])
    EXPECT_TRUE(kernel["operator"] == "window" || kernel["operator"] == "cmp") << kernel;
  EXPECT_FALSE(isAnythingStored());
}

TEST_F(TuneWorkload, TheDirectionAddsKernelsOfGradients) {
  const api::Engine engine(options(NSA_MISS_DEFAULT));
  const auto kernels = [&](nsa_tune_direction direction) {
    nsa_tune_options tuning = NSA_INIT(nsa_tune_options);
    tuning.dry_run = 1;
    tuning.direction = direction;
    return nlohmann::json::parse(engine.tuneWorkload(kWindow, tuning));
  };
  const auto operators = [](const nlohmann::json &plan) {
    std::set<std::string> names;
    for (const nlohmann::json &kernel : plan["kernels"])
      names.insert(kernel.value("operator", ""));
    return names;
  };
  const std::set<std::string> backward = {"deltas", "attention_dq", "attention_dkv", "sum_parts"};
  EXPECT_EQ(operators(kernels(NSA_TUNE_FORWARD)), std::set<std::string>{"window"});
  EXPECT_EQ(operators(kernels(NSA_TUNE_BACKWARD)), backward);
  std::set<std::string> all = backward;
  all.insert("window");
  const nlohmann::json both = kernels(NSA_TUNE_BOTH);
  EXPECT_EQ(operators(both), all);
  EXPECT_EQ(both.value("direction", ""), "both");
  EXPECT_EQ(both.value("workload", ""), "one, forward and backward");
}

TEST_F(TuneWorkload, ADryRunTakesTheLimitOfAKernel) {
  const api::Engine engine(options(NSA_MISS_DEFAULT));
  nsa_tune_options tuning = NSA_INIT(nsa_tune_options);
  tuning.dry_run = 1;
  tuning.kernel_seconds = 0.5;
  nsa_tune_counts counts = NSA_INIT(nsa_tune_counts);
  const nlohmann::json plan = nlohmann::json::parse(engine.tuneWorkload(kWindow, tuning, &counts));
  EXPECT_EQ(plan["devices"][0]["measure"], 1);
  EXPECT_EQ(plan["devices"][0]["seconds_at_most"], 0.5);
}

// The database in memory is the engine's own.
TEST_F(TuneWorkload, InMemoryNothingIsTunedTwice) {
  nsa_engine_options inMemory = options(NSA_MISS_DEFAULT);
  inMemory.cache_path = ":memory:";
  const api::Engine engine(inMemory);
  nsa_tune_counts counts = NSA_INIT(nsa_tune_counts);
  engine.tuneWorkload(kWindow, NSA_INIT(nsa_tune_options), &counts);
  EXPECT_EQ(counts.tuned, 1u);
  engine.tuneWorkload(kWindow, NSA_INIT(nsa_tune_options), &counts);
  EXPECT_EQ(counts.stored, 1u);
  EXPECT_EQ(counts.tuned, 0u);
}

// A host measures no dense attention, so the crossover that the workload asks for is left, and nothing of it begins.
TEST_F(TuneWorkload, WhatDoesNotBeginIsNotTold) {
  nlohmann::json workload = nlohmann::json::parse(kTiny);
  workload["prefill"]["crossover"] = true;
  const api::Engine engine(options(NSA_MISS_DEFAULT));
  std::vector<std::string> told;
  nsa_tune_options tuning = NSA_INIT(nsa_tune_options);
  tuning.budget_seconds = 1e-6;
  tuning.user = &told;
  tuning.progress = [](void *user, const nsa_tune_progress *progress) -> int32_t {
    static_cast<std::vector<std::string> *>(user)->emplace_back(progress->what);
    return 0;
  };
  nsa_tune_counts counts = NSA_INIT(nsa_tune_counts);
  const nlohmann::json report = nlohmann::json::parse(engine.tuneWorkload(workload.dump(), tuning, &counts));
  ASSERT_EQ(report["crossovers"].size(), 1u);
  EXPECT_EQ(report["crossovers"][0]["status"], "left");
  EXPECT_EQ(told, std::vector<std::string>());
}

TEST_F(TuneWorkload, WhatBreaksARuleIsAClearError) {
  expectError(errorOf(nullptr), "workload");
  expectError(errorOf(""), "workload holds no plan: it is empty");
  expectError(errorOf("{\"name\": "), "workload is not valid JSON");
  expectError(errorOf(R"({"name": "one", "plans": [], "haeds": 1})"), "workload: plans = []");
  std::string unknown = kWindow;
  unknown.insert(1, R"("haeds": 1, )");
  expectError(errorOf(unknown.c_str()), "workload: haeds = 1: is no field there");
  nsa_tune_options tuning = NSA_INIT(nsa_tune_options);
  tuning.budget_seconds = -2;
  expectError(errorOf(kWindow, tuning), "budget_seconds = -2.000000: must be positive and finite");
  tuning = NSA_INIT(nsa_tune_options);
  tuning.kernel_seconds = -2;
  expectError(errorOf(kWindow, tuning), "kernel_seconds = -2.000000: must be positive and finite");
  tuning = NSA_INIT(nsa_tune_options);
  tuning.kernel = "window";
  expectError(errorOf(kWindow, tuning), "kernel = set: must be 0: only nsa_tune_spec reads it");
  tuning = NSA_INIT(nsa_tune_options);
  tuning.again = 2;
  expectError(errorOf(kWindow, tuning), "again = 2: must be 0 or 1");
  tuning = NSA_INIT(nsa_tune_options);
  tuning.operators = "windows";
  expectError(errorOf(kWindow, tuning), "operators = windows: must be an operator of one kernel");
  tuning.operators = "cmp";
  expectError(errorOf(kWindow, tuning), "operators = cmp: must be of kernels that the workloads have: window");
  tuning = NSA_INIT(nsa_tune_options);
  tuning.direction = 3;
  expectError(errorOf(kWindow, tuning), "direction = 3: must be NSA_TUNE_FORWARD, NSA_TUNE_BACKWARD or NSA_TUNE_BOTH");
  tuning.direction = NSA_TUNE_BACKWARD;
  expectError(errorOf(kDecode, tuning), "direction = backward: must be forward or both");
  tuning = NSA_INIT(nsa_tune_options);
  tuning.reserved[0] = 1;
  expectError(errorOf(kWindow, tuning), "options.reserved = 1: must be 0");
  expectError(errorOf(kWindow, NSA_INIT(nsa_tune_options), NSA_MISS_FAIL),
              "miss_policy = fail: opens no compiler, so nothing is tuned");
}

TEST_F(TuneWorkload, WithoutACompilerNothingBegins) {
  nsa_engine_options without = options(NSA_MISS_DEFAULT);
  const std::string broken = scratch.write("libnsa_compiler.so", "no library");
  without.compiler_path = broken.c_str();
  const api::Engine engine(without);
  nsa_error error{};
  EXPECT_EQ(nsa_tune_workload(engine.handle(), kWindow, nullptr, nullptr, nullptr, &error), NSA_UNAVAILABLE);
  expectError(error.message, broken);
  EXPECT_FALSE(isAnythingStored());
}

} // namespace
} // namespace nsa
