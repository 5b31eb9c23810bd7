// What a pinned table changes: its choices alone count, its digest says what runs, and packs with their signatures are
// pinned as files are. No compiler takes part.
#include "cache/pack_writer.h"
#include "tests/unit/runtime/fallback_fixture.h"

#include <algorithm>
#include <fcntl.h>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

namespace nsa::test::c_api {
namespace {

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
  EXPECT_NE(std::string(lastFailure().hint).find("make the pinned table anew"), std::string::npos);
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

  const std::string keys = folder.write("open.public", SecretKey::generate().publicKey().text());
  ASSERT_EQ(chmod(keys.c_str(), 0666), 0); // so it is not trusted
  for (const int strict : {0, 1}) {        // which are a warning, or decide
    Engine keyed = open([&](nsa_engine_options &options) {
      options.cache_keys = keys.c_str();
      options.require_signature = strict;
    });
    EXPECT_EQ(keyed.status, strict ? NSA_IO_ERROR : NSA_OK) << keyed.error.message;
    EXPECT_EQ(std::string(keyed.error.message).find(keys) != std::string::npos, strict == 1) << keyed.error.message;
    ASSERT_EQ(keyed.log.size(), strict ? 0u : 1u);
    if (!strict)
      EXPECT_NE(keyed.log[0].find(keys + "' is not used"), std::string::npos) << keyed.log[0];
  }
  const std::string key = folder.write("k.public", SecretKey::generate().publicKey().text());
  Engine warned = open([&](nsa_engine_options &options) { options.cache_keys = key.c_str(); });
  ASSERT_EQ(warned.log.size(), 1u);
  EXPECT_NE(warned.log[0].find("none of the trusted keys has signed it"), std::string::npos) << warned.log[0];

  for (const std::string &file : {pin, database}) { // neither has a signature
    pin = file;
    Engine strict = open([](nsa_engine_options &options) { options.require_signature = 1; });
    EXPECT_EQ(strict.status, NSA_IO_ERROR);
    EXPECT_NE(std::string(strict.error.message).find("sign"), std::string::npos) << strict.error.message;
  }
}

// Closing a descriptor of a file drops all locks that the process has on it, also on another engine's database.
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
  EXPECT_EQ(nsa_tune_spec(engine.handle, &call.spec, &call.maxima, nullptr, nullptr, &json, &error),
            NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(error.field, "pin_path");
  EXPECT_NE(std::string(error.hint).find("NSA_PIN"), std::string::npos);
  for (const nsa_miss_policy policy : {NSA_MISS_TUNE, NSA_MISS_BACKGROUND}) {
    Engine refused = open([&](nsa_engine_options &options) { options.miss_policy = policy; });
    EXPECT_EQ(refused.status, NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(refused.error.field, "miss_policy");
    EXPECT_NE(std::string(refused.error.rule).find("pin_path"), std::string::npos) << refused.error.rule;
  }
}

TEST_F(Pinned, AnErrorNamesTheVariableWhereItGaveThePath) {
  setenv("NSA_PIN", pin.c_str(), 1);
  Engine engine(cache);
  unsetenv("NSA_PIN");
  EXPECT_EQ(engine.status, NSA_IO_ERROR);
  EXPECT_STREQ(engine.error.field, "NSA_PIN");
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
