// Fallbacks of an engine that makes nothing, from stored kernels to a finished run: what serves, how it is counted and
// shown, and what is an error instead. No compiler takes part, and none is opened.
#include "cache/pack_writer.h"
#include "tests/unit/runtime/fallback_fixture.h"

#include <filesystem>

namespace nsa::test::c_api {
namespace {

TEST_F(Fallback, APackIsNamedWhereItServesAndWhereItDoesNot) {
  const std::string own = folder.file("own.db"), pack = folder.file("kernels.nsapack");
  storeIn(own, 40, 7, "packed");
  {
    Result<CacheFile> from = CacheFile::open(own);
    ASSERT_TRUE(from) << from.status().toString();
    const Result<PackReport> report = writePack(*from, pack, {.source = "test"});
    ASSERT_TRUE(report) << report.status().toString();
  }
  const std::string path = std::filesystem::canonical(pack);
  Engine engine(cache, [&](nsa_engine_options &options) { options.cache_packs = pack.c_str(); });
  ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
  const Json would = explain(engine, call);
  EXPECT_EQ(would["would"], "run what the pack holds");
  EXPECT_EQ(would["database"]["source"], "pack");
  EXPECT_EQ(would["database"]["place"], path);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(describe(plan)["source"], "pack");
  EXPECT_EQ(describe(plan)["launches"][0]["source"], "pack");
  EXPECT_EQ(describe(Plan(engine, call))["source"], "memory");
  Call other(NSA_LAYOUT_DENSE);
  other.maxima.max_seqlen_k = 600;
  EXPECT_EQ(describe(Plan(engine, other))["source"], "pack") << "as the nearest";

  call.spec.qk_dim = 16;
  EXPECT_EQ(explain(engine, call)["database"]["place"], cache + " and the pack " + path);
  Plan missed(engine, call);
  EXPECT_EQ(missed.status, NSA_CACHE_MISS);
  EXPECT_NE(std::string(missed.error.message).find("; looked in " + cache + " and the pack " + path), std::string::npos)
      << missed.error.message;

  Engine pinned(cache, [&](nsa_engine_options &options) { options.pin_path = pack.c_str(); });
  call.spec.qk_dim = 8;
  EXPECT_EQ(describe(Plan(pinned, call))["source"], "pack") << "a pinned one";
}

TEST_F(Fallback, TheNearestLengthServesAndIsShown) {
  storeFor(600, 7, "far");
  storeFor(100, 7, "near");
  std::vector<std::string> log;
  Engine engine(cache, [&](nsa_engine_options &options) {
    options.log = [](void *user, nsa_log_level level, const char *tag, const char *message) {
      static_cast<std::vector<std::string> *>(user)->push_back(std::to_string(level) + " " + tag + " " + message);
    };
    options.log_user = &log;
    options.log_level = NSA_LOG_INFO;
  });
  const Json would = explain(engine, call);
  EXPECT_EQ(would["step"], "nearest");
  EXPECT_EQ(would["variant"], "near");
  EXPECT_EQ(would["config"], "tile=16");
  EXPECT_EQ(would["tuned"], true);
  EXPECT_EQ(would["served_by"]["distance"], 1);
  EXPECT_EQ(would["why"], "stored for seqlen_k=128 instead of 64");
  EXPECT_EQ(would["would"], "serve what is stored for another problem");
  EXPECT_EQ(engine.stats().fallback_nearest, 0u) << "asking is not serving";

  Plan plan(engine, call), second(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  const Json described = describe(plan);
  EXPECT_EQ(described["launches"][0]["template"], "near");
  EXPECT_EQ(described["launches"][0]["step"], "nearest");
  EXPECT_EQ(described["launches"][0]["served_by"], "seqlen_k=128 instead of 64");
  EXPECT_EQ(described["tuned"], true);
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  EXPECT_EQ(engine.stats().fallback_nearest, 1u);
  EXPECT_EQ(engine.stats().plans_from_database, 1u);
  ASSERT_EQ(log.size(), 1u) << "said once, at info";
  EXPECT_TRUE(log[0].starts_with("2 planner ")) << log[0];
  EXPECT_NE(log[0].find("seqlen_k=128 instead of 64"), std::string::npos) << log[0];
  EXPECT_FALSE(hasCompiler());

  // Nothing of it was stored.
  std::string warning;
  auto store = KernelStore::open({.path = cache, .readOnly = true}, warning);
  EXPECT_EQ((*store)->listChoices()->size(), 2u);
}

TEST_F(Fallback, ItsOwnKernelComesFirst) {
  storeFor(100, 7, "near");
  storeFor(40, 7, "own");
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(describe(plan)["launches"][0]["step"], "exact");
  EXPECT_EQ(engine.stats().fallback_nearest, 0u);
  EXPECT_EQ(explain(engine, call)["step"], "exact");
}

// One that the device would not launch for these maxima, and one that is damaged: the next one serves.
TEST_F(Fallback, WhatCannotServeIsPassedOver) {
  storeFor(100, 7, "huge", cpuDeviceKey(), {.grid = "max_seqlen_k * 2147483647 ; 1 ; 1"});
  storeFor(200, 7, "foreign", cpuDeviceKey(), {.params = "param i32 moon\n"});
  storeFor(600, 7, "far");
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  const Json described = describe(plan);
  EXPECT_EQ(described["launches"][0]["template"], "far");
  ASSERT_EQ(described["fallbacks"].size(), 2u) << described;
  EXPECT_NE(described["fallbacks"][0].get<std::string>().find("grid.x"), std::string::npos) << described;
  EXPECT_NE(described["fallbacks"][1].get<std::string>().find("moon"), std::string::npos) << described;
}

TEST_F(Fallback, OneContentIsLoadedOnce) {
  storeFor(100, 7, "near");
  Engine engine(cache);
  Plan plan(engine, call);
  call.maxima.max_seqlen_k = 20;
  call.spec.window = 3;
  call.set(NSA_K, call.memory[1], NSA_BF16, {2, 20, 2, 8});
  Plan other(engine, call);
  ASSERT_EQ(other.status, NSA_OK) << other.error.message;
  EXPECT_EQ(engine.stats().fallback_nearest, 2u);
  EXPECT_EQ(engine.stats().kernels_loaded, 1u);
}

TEST_F(Fallback, CodeOfFewerFeaturesServesUntuned) {
  if (hostCpuFeatures() != "x86-64-v4")
    GTEST_SKIP() << "this processor has no older level that it could fall back to";
  storeFor(40, 7, "older", "cpu x86-64-v3");
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(describe(plan)["launches"][0]["step"], "architecture");
  EXPECT_EQ(describe(plan)["tuned"], false) << "it was measured on another kind";
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  EXPECT_EQ(engine.stats().fallback_architecture, 1u);
}

TEST_F(Fallback, CodeOfMoreFeaturesNeverServes) {
  storeFor(40, 7, "newer", "cpu x86-64-v4");
  Engine engine(cache, [](nsa_engine_options &options) { options.cpu_features = "x86-64-v3"; });
  Plan plan(engine, call);
  EXPECT_EQ(plan.status, NSA_CACHE_MISS);
  EXPECT_NE(std::string(plan.error.message).find("on 'cpu x86-64-v4'"), std::string::npos) << plan.error.message;
}

TEST_F(Fallback, AStepThatIsNotAllowedIsAnError) {
  storeFor(100, 7, "near");
  for (const char *steps : {"exact", "model,architecture,compiled,cpu"}) {
    Engine engine(cache, [&](nsa_engine_options &options) { options.fallbacks = steps; });
    Plan plan(engine, call);
    EXPECT_EQ(plan.status, NSA_CACHE_MISS) << steps;
    const std::string message = plan.error.message;
    EXPECT_NE(message.find(Problem::make(call.internalSpec(), call.internalMaxima()).key()), std::string::npos);
    EXPECT_NE(message.find("nearest: seqlen_k=128 instead of 64"), std::string::npos) << message;
    EXPECT_STREQ(plan.error.rule, "nearest: seqlen_k=128 instead of 64");
    EXPECT_NE(std::string(plan.error.hint).find("nsa tune --op window"), std::string::npos) << plan.error.hint;
    EXPECT_EQ(engine.stats().fallback_nearest, 0u);
    EXPECT_EQ(explain(engine, call)["would"], "fail with a cache miss");
    EXPECT_EQ(explain(engine, call)["fails"], true);
  }
  // Where nothing may be compiled either, the policy is no other.
  Engine engine(cache, [&](nsa_engine_options &options) {
    options.fallbacks = "exact";
    options.miss_policy = NSA_MISS_DEFAULT;
  });
  Plan plan(engine, call);
  EXPECT_EQ(plan.status, NSA_CACHE_MISS);
  EXPECT_STREQ(plan.error.field, "fallbacks");
  EXPECT_FALSE(hasCompiler());
}

TEST_F(Fallback, NothingIsTunedWhereNothingMayBeCompiled) {
  Engine engine(cache);
  char *json = nullptr;
  nsa_error error;
  EXPECT_EQ(nsa_tune_spec(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, &json, &error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "miss_policy");
  EXPECT_NE(std::string(error.hint).find("another miss policy"), std::string::npos) << error.hint;
  const std::string problem = Problem::make(call.internalSpec(), call.internalMaxima()).key();
  nsa_tune_options options = NSA_INIT(nsa_tune_options);
  options.kernel = problem.c_str();
  EXPECT_EQ(nsa_tune_spec(engine.handle, &call.spec, &call.maxima, &options, nullptr, &json, &error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "miss_policy");
  EXPECT_FALSE(hasCompiler());
}

TEST_F(Fallback, AMissSaysWhatIsNearestInAllCases) {
  {
    Engine engine(cache);
    Plan plan(engine, call);
    EXPECT_STREQ(plan.error.rule, "there is no kernel for window");
  }
  call.spec.query_heads = 8;
  storeFor(40, 7, "own"); // compiled for groups of 2, not of 4
  Engine engine(cache);
  Plan plan(engine, call);
  EXPECT_EQ(plan.status, NSA_CACHE_MISS);
  EXPECT_STREQ(plan.error.rule, "nearest: group=2 instead of 4");
}

TEST_F(Fallback, AnExplanationHasTheMissingKernelThatIsNeverTuned) {
  const Call packed(NSA_LAYOUT_PACKED);
  {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = cache, .readOnly = false}, warning);
    ASSERT_TRUE(store.isOk()) << store.status().toString();
    storeChoice(**store, packed.internalSpec(), packed.internalMaxima(), KernelText{}, countingCode());
  }
  Engine engine(cache);
  const Json kernels = explain(engine, packed)["kernels"];
  ASSERT_EQ(kernels.size(), 2u) << kernels;
  EXPECT_TRUE(kernels[0].value("problem", "").starts_with("sequences ")) << kernels[0];
  EXPECT_EQ(kernels[0]["fails"], true);
  EXPECT_EQ(kernels[0]["would"], "fail with a cache miss");
  EXPECT_TRUE(kernels[1].value("problem", "").starts_with("window ")) << kernels[1];
  EXPECT_EQ(kernels[1]["fails"], false);
  EXPECT_EQ(Plan(engine, packed).status, NSA_CACHE_MISS);
}

TEST_F(Fallback, TheCommandOfAMissIsWholeWhateverThePath) {
  std::string path = folder.path();
  for (int i = 0; i < 4; ++i)
    path += "/" + std::string(200, 'x');
  for (const bool isLong : {false, true}) {
    Engine engine(isLong ? path + "/" + std::string(200, 'y') : path);
    Plan plan(engine, call);
    EXPECT_EQ(plan.status, NSA_CACHE_MISS);
    const std::string hint = lastFailure().hint, cut = plan.error.hint;
    EXPECT_TRUE(hint.ends_with(" --cache " + path + (isLong ? "/" + std::string(200, 'y') : ""))) << hint;
    EXPECT_NE(hint.find("\"query_heads\":4"), std::string::npos) << hint;
    EXPECT_EQ(cut, hint.substr(0, cut.size() - 3) + "...") << "nsa_error has less room";
    EXPECT_EQ(cut.size(), sizeof plan.error.hint - 1);
  }
}

TEST_F(Fallback, TheCpuInAGpusPlaceMayBeAnError) {
  auto open = [&](const char *fallbacks) {
    return Engine(cache, [&](nsa_engine_options &options) {
      options.device = nullptr;
      options.fallbacks = fallbacks;
    });
  };
  setenv("NSA_DEVICE", "", 1);
  Engine allowed = open("all");
  ASSERT_EQ(allowed.status, NSA_OK) << allowed.error.message;
  char *text = nullptr;
  ASSERT_EQ(nsa_engine_describe(allowed.handle, &text, nullptr), NSA_OK);
  const bool gpu = Json::parse(text)["device"]["kind"] == "gpu";
  nsa_free(text);
  if (gpu)
    GTEST_SKIP() << "this machine's GPU serves";
  EXPECT_EQ(allowed.stats().fallback_cpu, 1u);
  Engine refused = open("nearest");
  EXPECT_EQ(refused.status, NSA_UNAVAILABLE) << refused.error.message;
  EXPECT_NE(std::string(refused.error.hint).find("NSA_FALLBACKS"), std::string::npos) << refused.error.hint;
  Engine chosen(cache, [](nsa_engine_options &options) { options.fallbacks = "exact"; });
  EXPECT_EQ(chosen.status, NSA_OK) << "a device that was named is none in another's place";
  EXPECT_EQ(chosen.stats().fallback_cpu, 0u);
}

TEST_F(Fallback, AHostOfTheFirstHeaderGetsTheCountersItKnows) {
  storeFor(40, 7, "own");
  Engine engine(cache);
  Plan plan(engine, call);
  struct Old {
    size_t size = sizeof(size_t) + 19 * 8;
    uint64_t values[19];
    uint64_t behind = 77;
  } old;
  nsa_error error;
  ASSERT_EQ(nsa_engine_get_stats(engine.handle, reinterpret_cast<nsa_stats *>(&old), &error), NSA_OK) << error.message;
  EXPECT_EQ(old.size, sizeof(size_t) + 19 * 8);
  EXPECT_EQ(old.values[1], 1u) << "plans_from_database";
  EXPECT_EQ(old.behind, 77u);
}

TEST_F(Fallback, TimesAreAddedUp) {
  storeFor(40, 7, "own");
  Engine engine(cache);
  EXPECT_EQ(engine.stats().load_ms, 0);
  Plan plan(engine, call);
  const nsa_stats stats = engine.stats();
  EXPECT_GT(stats.lookup_ms, 0);
  EXPECT_GT(stats.load_ms, 0);
  EXPECT_EQ(stats.compile_ms + stats.render_ms + stats.tune_ms, 0);
  Plan second(engine, call);
  EXPECT_EQ(engine.stats().lookup_ms, stats.lookup_ms) << "memory costs nothing of the kind";
}

TEST_F(Fallback, AFaultThatRepeatsItselfDoesNotFillTheLog) {
  KernelText bad{.params = "param i32 moon\n"};
  for (int64_t seqlenK = 32; seqlenK <= 32 << 6; seqlenK *= 2)
    storeFor(seqlenK, 7, "bad" + std::to_string(seqlenK), cpuDeviceKey(), bad);
  Engine engine(cache, [](nsa_engine_options &options) { options.log_limit = 3; });
  for (int64_t seqlenK = 32; seqlenK <= 32 << 6; seqlenK *= 2) {
    call.maxima.max_seqlen_k = seqlenK;
    EXPECT_EQ(Plan(engine, call).status, NSA_CACHE_MISS);
  }
  ASSERT_EQ(engine.log.size(), 4u);
  EXPECT_NE(engine.log[3].find("further ones are left out"), std::string::npos) << engine.log[3];
  EXPECT_EQ(engine.stats().log_dropped, 4u);
}

} // namespace
} // namespace nsa::test::c_api
