// Fallbacks of an engine that makes nothing, from stored kernels to a finished run: what serves, how it is counted and
// shown, what is an error instead, and what a pinned table changes. No compiler takes part, and none is opened.
#include "cache/pack_writer.h"
#include "runtime/engine/engine.h"
#include "tests/unit/runtime/c_api_fixture.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace nsa::test::c_api {
namespace {

using Json = nlohmann::json;

class Fallback : public CApi {
protected:
  // The fixture's call for longer keys and another window, as the name of its template.
  void storeFor(int64_t seqlenK, int32_t window, const std::string &name, const std::string &device = cpuDeviceKey(),
                const KernelText &text = {}) {
    storeIn(cache, seqlenK, window, name, device, text);
  }
  void storeIn(const std::string &path, int64_t seqlenK, int32_t window, const std::string &name,
               const std::string &device = cpuDeviceKey(), KernelText text = {}) {
    Call other(NSA_LAYOUT_DENSE);
    other.maxima.max_seqlen_k = seqlenK;
    other.spec.window = window;
    text.templateName = name;
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = path, .readOnly = false}, warning);
    ASSERT_TRUE(store.isOk()) << store.status().toString();
    storeChoice(**store, other.internalSpec(), other.internalMaxima(), text, countingCode(), device);
  }
  static Json describe(const Plan &plan) { return Json::parse(nsa_plan_describe(plan.handle)); }
  static Json explain(const Engine &engine, const Call &call) {
    char *text = nullptr;
    nsa_error error;
    EXPECT_EQ(nsa_explain(engine.handle, &call.spec, &call.maxima, &text, &error), NSA_OK) << error.message;
    Json json = text ? Json::parse(text) : Json();
    nsa_free(text);
    return json;
  }
  static bool hasCompiler() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find("libnsa_compiler") != std::string::npos)
        return true;
    return false;
  }

  Call call{NSA_LAYOUT_DENSE}; // 40 keys, in the bucket of 64; a window of 7, in that of 8
};

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
  EXPECT_TRUE(log[0].starts_with("1 planner ")) << log[0];
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
  EXPECT_EQ(nsa_tune(engine.handle, &call.spec, &call.maxima, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "miss_policy");
  EXPECT_NE(std::string(error.hint).find("another miss policy"), std::string::npos) << error.hint;
  const std::string problem = Problem::make(call.internalSpec(), call.internalMaxima()).key();
  EXPECT_EQ(nsa_tune_kernel(engine.handle, &call.spec, &call.maxima, problem.c_str(), 1, &json, &error),
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

TEST_F(Fallback, TheCommandOfAMissIsWholeWhateverThePath) {
  const std::string path = folder.file(std::string(200, 'x'));
  Engine engine(path);
  Plan plan(engine, call);
  EXPECT_EQ(plan.status, NSA_CACHE_MISS);
  const std::string hint = plan.error.hint;
  EXPECT_TRUE(hint.ends_with("}")) << hint;
  EXPECT_NE(hint.find("\"query_heads\":4"), std::string::npos) << hint;
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
  ASSERT_EQ(nsa_engine_stats(engine.handle, reinterpret_cast<nsa_stats *>(&old), &error), NSA_OK) << error.message;
  EXPECT_EQ(old.size, sizeof(size_t) + 19 * 8);
  EXPECT_EQ(old.values[1], 1u) << "plans_from_database";
  EXPECT_EQ(old.behind, 77u);
  nsa_stats stats = NSA_INIT(nsa_stats);
  stats.size = sizeof(nsa_stats) + 8;
  EXPECT_EQ(nsa_engine_stats(engine.handle, &stats, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "stats.size");
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
  for (int64_t seqlenK = 8; seqlenK <= 8 << 6; seqlenK *= 2)
    storeFor(seqlenK, 7, "bad" + std::to_string(seqlenK), cpuDeviceKey(), bad);
  Engine engine(cache, [](nsa_engine_options &options) { options.log_limit = 3; });
  for (int64_t seqlenK = 8; seqlenK <= 8 << 6; seqlenK *= 2) {
    call.maxima.max_seqlen_k = seqlenK;
    EXPECT_EQ(Plan(engine, call).status, NSA_CACHE_MISS);
  }
  ASSERT_EQ(engine.log.size(), 4u);
  EXPECT_NE(engine.log[3].find("further ones are left out"), std::string::npos) << engine.log[3];
  EXPECT_EQ(engine.stats().log_dropped, 4u);
}

// ------------------------------------------------------------------------------------------ pinned tables

class Pinned : public Fallback {
protected:
  std::string pin = folder.file("pin.db");

  Engine open(const std::function<void(nsa_engine_options &)> &change = {}) {
    return Engine(cache, [&](nsa_engine_options &options) {
      options.pin_path = pin.c_str();
      if (change)
        change(options);
    });
  }
  static Json describeEngine(const Engine &engine) {
    char *text = nullptr;
    EXPECT_EQ(nsa_engine_describe(engine.handle, &text, nullptr), NSA_OK);
    Json json = Json::parse(text);
    nsa_free(text);
    return json;
  }
};

TEST_F(Pinned, OnlyThePinnedChoicesCount) {
  storeFor(40, 7, "tuned_here");
  storeIn(pin, 100, 7, "pinned");
  Engine engine = open();
  ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(describe(plan)["launches"][0]["template"], "pinned") << "the pin's nearest, not the cache's own";
  EXPECT_EQ(explain(engine, call)["variant"], "pinned");
  call.spec.qk_dim = 16;
  Plan missed(engine, call);
  EXPECT_EQ(missed.status, NSA_CACHE_MISS);
  EXPECT_NE(std::string(missed.error.hint).find("make the pinned table anew"), std::string::npos) << missed.error.hint;
}

TEST_F(Pinned, EqualTablesHaveEqualDigests) {
  storeIn(pin, 40, 7, "one");
  storeIn(pin, 100, 7, "two");
  const Json first = describeEngine(open())["pin"];
  EXPECT_EQ(first["choices"], 2);
  EXPECT_EQ(first["path"], pin);
  EXPECT_EQ(first["digest"].get<std::string>().size(), 64u);

  pin = folder.file("copy.db");
  storeIn(pin, 100, 7, "two"); // in another order
  storeIn(pin, 40, 7, "one");
  EXPECT_EQ(describeEngine(open())["pin"]["digest"], first["digest"]);
  storeIn(pin, 40, 7, "other");
  EXPECT_NE(describeEngine(open())["pin"]["digest"], first["digest"]);
  EXPECT_FALSE(describeEngine(Engine(cache)).contains("pin"));
}

// A threshold decides the template of a neighbour, and a measured neighbour goes first.
TEST_F(Pinned, WhateverElseChoosesIsInTheDigest) {
  storeIn(pin, 40, 7, "one");
  const auto digest = [&] { return describeEngine(open())["pin"]["digest"].get<std::string>(); };
  const auto change = [&](const std::function<Status(KernelStore &)> &how) {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = pin}, warning);
    ASSERT_TRUE(store.isOk()) << store.status().toString();
    const Status status = how(**store);
    ASSERT_TRUE(status.isOk()) << status.toString();
  };
  const auto routeOf = [](int64_t threshold) {
    return StoredRoute{"dtype=bf16", cpuDeviceKey(), "window.attention_from", threshold, "", {}};
  };
  std::vector<std::string> digests = {digest()};
  for (const int64_t threshold : {int64_t{128}, int64_t{256}, StoredRoute::kNever}) {
    change([&](KernelStore &store) { return store.putRoute(routeOf(threshold)); });
    digests.push_back(digest());
  }
  const std::string other = folder.file("other.db");
  change([&](KernelStore &store) {
    StoredChoice choice = (*store.listChoices()).at(0);
    choice.tuned = false;
    std::string warning;
    Result<std::unique_ptr<KernelStore>> copy = KernelStore::open({.path = other}, warning);
    if (!copy)
      return copy.status();
    NSA_RETURN_IF_ERROR((*copy)->putRoute(routeOf(StoredRoute::kNever)));
    return (*copy)->put(**store.findKernel(choice.content), &choice);
  });
  pin = other;
  digests.push_back(digest());
  for (size_t i = 0; i < digests.size(); ++i)
    EXPECT_EQ(std::count(digests.begin(), digests.end(), digests[i]), 1) << i;
}

// The same choices with other binaries are another table.
TEST_F(Pinned, WhatRunsIsInTheDigest) {
  storeIn(pin, 40, 7, "one");
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = pin}, warning);
  ASSERT_TRUE(store.isOk()) << store.status().toString();
  const StoredChoice choice = (*store->get()->listChoices()).at(0);
  const StoredKernel kernel = **store->get()->findKernel(choice.content);
  const auto digestWith = [&](const StoredKernel &other) {
    EXPECT_TRUE(store->get()->put(other, &choice).isOk());
    return describeEngine(open())["pin"]["digest"].get<std::string>();
  };
  const std::string digest = digestWith(kernel);
  StoredKernel other = kernel;
  other.binary.insert(other.binary.begin(), std::byte{0x90}); // an instruction that does nothing
  EXPECT_NE(digestWith(other), digest);
  other = kernel;
  test::replaceOnce(other.manifest, "threads 1", "threads 2");
  EXPECT_NE(digestWith(other), digest);
  EXPECT_EQ(digestWith(kernel), digest);
}

TEST_F(Pinned, WhatIsChangedLaterNeitherChoosesNorRuns) {
  storeIn(pin, 40, 7, "one");
  Engine engine = open(), late = open();
  const std::string digest = describeEngine(engine)["pin"]["digest"];
  storeIn(pin, 40, 7, "two"); // another choice; the kernel of the first one stays
  {
    Plan plan(engine, call);
    ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
    EXPECT_EQ(describe(plan)["launches"][0]["template"], "one");
  }
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = pin}, warning);
  ASSERT_TRUE(store.isOk()) << store.status().toString();
  StoredKernel kernel = **store->get()->findKernel("content-of-one");
  kernel.binary.insert(kernel.binary.begin(), std::byte{0x90});
  ASSERT_TRUE(store->get()->put(kernel, nullptr).isOk());
  Plan plan(late, call);
  EXPECT_EQ(plan.status, NSA_CACHE_MISS) << "another binary of that name is none that was pinned";
  EXPECT_EQ(describeEngine(late)["pin"]["digest"], digest);
}

// A pack of the same choices is the same table.
TEST_F(Pinned, APackPinsAsWell) {
  storeIn(pin, 40, 7, "pinned");
  std::string warning;
  ASSERT_TRUE((*KernelStore::open({.path = pin}, warning))
                  ->putRoute({"dtype=bf16", cpuDeviceKey(), "window.attention_from", 128, "", {}})
                  .isOk());
  const std::string digest = describeEngine(open())["pin"]["digest"];
  const std::string database = pin;
  pin = folder.file("pinned.nsapack");
  Result<CacheFile> from = CacheFile::open(database);
  ASSERT_TRUE(from) << from.status().toString();
  const Result<PackReport> report = writePack(*from, pin, {.source = "test"});
  ASSERT_TRUE(report) << report.status().toString();
  Engine engine = open();
  ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
  EXPECT_EQ(describeEngine(engine)["pin"]["digest"], digest);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  EXPECT_EQ(describe(plan)["launches"][0]["template"], "pinned");

  const std::string keys = folder.file("none.public");
  for (const int strict : {0, 1}) { // which are a warning, or decide
    Engine keyed = open([&](nsa_engine_options &options) {
      options.cache_keys = keys.c_str();
      options.require_signature = strict;
    });
    EXPECT_EQ(keyed.status, strict ? NSA_IO_ERROR : NSA_OK) << keyed.error.message;
    EXPECT_EQ(std::string(keyed.error.message).find(keys) != std::string::npos, strict == 1) << keyed.error.message;
    ASSERT_EQ(keyed.log.size(), strict ? 0u : 1u);
    if (!strict)
      EXPECT_NE(keyed.log[0].find(keys + "' cannot be read"), std::string::npos) << keyed.log[0];
  }
  const std::string key = folder.write("k.public", SecretKey::generate().publicKey().text());
  Engine warned = open([&](nsa_engine_options &options) { options.cache_keys = key.c_str(); });
  ASSERT_EQ(warned.log.size(), 1u);
  EXPECT_NE(warned.log[0].find("none of the trusted keys has signed it"), std::string::npos) << warned.log[0];

  for (const std::string &file : {pin, database}) { // nobody has signed either
    pin = file;
    Engine strict = open([](nsa_engine_options &options) { options.require_signature = 1; });
    EXPECT_EQ(strict.status, NSA_IO_ERROR);
    EXPECT_NE(std::string(strict.error.message).find("sign"), std::string::npos) << strict.error.message;
  }
}

// Closing a descriptor of a file drops all locks that the process has on it, also those of another engine's database.
TEST_F(Pinned, TheFileOfAnotherEngineKeepsItsLocks) {
  storeIn(pin, 40, 7, "pinned");
  std::string warning;
  Result<std::unique_ptr<KernelStore>> writer = KernelStore::open({.path = pin}, warning);
  ASSERT_TRUE(writer.isOk()) << writer.status().toString();
  const int descriptor = ::open(pin.c_str(), O_RDWR | O_CLOEXEC); // stays open as long as the store
  ASSERT_GE(descriptor, 0);
  const auto isLocked = [&] { // by a lock of the process, which one of an open file meets
    constexpr off_t kSharedFirst = 0x40000002, kSharedSize = 510; // sqlite's
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = kSharedFirst;
    lock.l_len = kSharedSize;
    EXPECT_EQ(fcntl(descriptor, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
  };
  ASSERT_TRUE(isLocked()) << "a writer of a log keeps a shared lock";
  EXPECT_EQ(open().status, NSA_OK);
  EXPECT_TRUE(isLocked());
  writer->reset();
  close(descriptor);
}

TEST_F(Pinned, NothingIsTunedOrWritten) {
  storeIn(pin, 40, 7, "pinned");
  chmod(pin.c_str(), 0444);
  Engine engine = open();
  char *json = nullptr;
  nsa_error error;
  EXPECT_EQ(nsa_tune(engine.handle, &call.spec, &call.maxima, &json, &error), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "pin_path");
  EXPECT_NE(std::string(error.hint).find("NSA_PIN"), std::string::npos);
  for (const nsa_miss_policy policy : {NSA_MISS_TUNE, NSA_MISS_BACKGROUND}) {
    Engine refused = open([&](nsa_engine_options &options) { options.miss_policy = policy; });
    EXPECT_EQ(refused.status, NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(refused.error.field, "miss_policy");
    EXPECT_NE(std::string(refused.error.rule).find("pin_path"), std::string::npos) << refused.error.rule;
  }
}

TEST_F(Pinned, ATableThatCannotBeUsedIsAnError) {
  auto expectRefused = [&](const std::string &text) {
    Engine engine = open();
    EXPECT_EQ(engine.status, NSA_IO_ERROR) << text;
    EXPECT_STREQ(engine.error.field, "pin_path");
    EXPECT_NE(std::string(engine.error.message).find(text), std::string::npos) << engine.error.message;
    EXPECT_STRNE(engine.error.hint, "");
  };
  expectRefused("no such file");
  writeFile(pin, std::string(10000, 'x'));
  expectRefused("no kernel database");
  writeFile(pin, ""); // a copy that was torn
  expectRefused("it is empty");
  unlink(pin.c_str());
  storeIn(pin, 40, 7, "pinned");
  chmod(pin.c_str(), 0666);
  expectRefused("writ");
  unlink(pin.c_str());
  ASSERT_EQ(mkfifo(pin.c_str(), 0600), 0); // whose opening waits for a writer
  expectRefused("no regular file");
}

} // namespace
} // namespace nsa::test::c_api
