// The database over packs: in which order choices serve, where their kernels come from, and what is said of files that
// do not serve.
#include "cache/pack_writer.h"
#include "runtime/engine/options/cache_settings.h"
#include "tests/unit/runtime/c_api_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>

using namespace nsa;

namespace {

const std::string kDevice = "cpu test";

class LayersTest : public testing::Test {
protected:
  static StoredKernel kernelOf(const std::string &name) {
    return {"content-of-" + name, test::manifestOf({.templateName = name}, Spec()), test::countingCode()};
  }
  static StoredChoice choiceOf(const std::string &problem, const std::string &name, bool tuned) {
    StoredChoice choice;
    choice.problem = "window " + problem;
    choice.device = kDevice;
    choice.content = "content-of-" + name;
    choice.tuned = tuned;
    choice.provenance = "test";
    return choice;
  }
  void put(const std::string &file, const std::string &problem, const std::string &name, bool tuned) {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = file}, warning);
    ASSERT_TRUE(store && warning.empty()) << warning;
    const StoredChoice choice = choiceOf(problem, name, tuned);
    ASSERT_TRUE((*store)->put(kernelOf(name), &choice).isOk());
  }
  void putRoute(const std::string &file, const std::string &name, int64_t threshold) {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = file}, warning);
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->putRoute({"family", kDevice, name, threshold, "test", {}}).isOk());
  }
  // A pack of what was put into the database `name`.db.
  std::string packOf(const std::string &name) {
    const std::string pack = folder.file(name + ".nsapack");
    Result<CacheFile> from = CacheFile::open(folder.file(name + ".db"));
    EXPECT_TRUE(from) << from.status().toString();
    if (from) {
      const Result<PackReport> report = writePack(*from, pack, {.source = "test"});
      EXPECT_TRUE(report) << report.status().toString();
    }
    settings.packs.push_back(pack);
    return pack;
  }
  KernelCache open() { return KernelCache(settings, Logger(sink, LogLevel::kWarning)); }
  static std::string found(KernelCache &cache, const std::string &problem) {
    const std::optional<KernelCache::Hit> hit = cache.find("window " + problem, kDevice);
    return hit ? hit->kernel.content.substr(11) + " of layer " + std::to_string(hit->layer) : "nothing";
  }

  test::Scratch folder;
  std::string database = folder.file("own.db"), first = folder.file("first.db"), second = folder.file("second.db");
  CacheSettings settings{.path = database};
  std::vector<std::string> log;
  Logger::Sink sink = [this](LogLevel, std::string_view, std::string_view message) { log.emplace_back(message); };
};

TEST_F(LayersTest, TunedBeforeUntunedAndTheDatabaseBeforePacks) {
  put(database, "a", "own-a", true);
  put(database, "b", "own-b", false);
  put(database, "c", "own-c", false);
  for (const char *problem : {"a", "b", "d"})
    put(first, problem, std::string("first-") + problem, problem[0] != 'b');
  put(first, "c", "first-c", false);
  put(first, "e", "first-e", false);
  for (const char *problem : {"a", "b", "d", "e"})
    put(second, problem, std::string("second-") + problem, true);
  packOf("first");
  packOf("second");
  KernelCache cache = open();
  EXPECT_EQ(found(cache, "a"), "own-a of layer 0") << "own and tuned";
  EXPECT_EQ(found(cache, "b"), "second-b of layer 2") << "a tuned one of any pack before an untuned one";
  EXPECT_EQ(found(cache, "c"), "own-c of layer 0") << "no layer has a tuned one";
  EXPECT_EQ(found(cache, "d"), "first-d of layer 1") << "packs in order";
  EXPECT_EQ(found(cache, "e"), "second-e of layer 2");
  EXPECT_EQ(found(cache, "f"), "nothing");
  EXPECT_EQ(cache.counters().packHits, 0u) << "a lookup is no use";
  for (const char *problem : {"a", "b", "c", "d", "e"})
    cache.noteUse(*cache.find(std::string("window ") + problem, kDevice));
  EXPECT_EQ(cache.counters().packHits, 3u);
  EXPECT_EQ(cache.counters().refusedPacks, 0u);
  EXPECT_EQ(cache.layerPath(0), database);
  EXPECT_EQ(cache.layerPath(2), std::filesystem::canonical(folder.file("second.nsapack")));
  EXPECT_EQ(cache.layerPath(3), "");
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_F(LayersTest, SaysWhereItLooks) {
  EXPECT_EQ(open().places(), database);
  put(first, "a", "first-a", true);
  const std::string pack = std::filesystem::canonical(packOf("first"));
  EXPECT_EQ(open().places(), database + " and the pack " + pack);
  settings.packs.push_back(folder.file("absent.nsapack"));
  EXPECT_EQ(open().places(), database + " and the pack " + pack + ", and one pack was refused");
  put(second, "a", "second-a", true);
  packOf("second");
  settings.packs.push_back(folder.file("lost.nsapack"));
  EXPECT_EQ(open().places(), database + " and 2 packs, and 2 packs were refused");
}

TEST_F(LayersTest, AKernelComesFromAnyLayer) {
  put(database, "a", "shared", true);
  put(first, "a", "shared", true);
  packOf("first");
  {
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = database}, warning);
    StoredKernel broken = kernelOf("shared");
    // The row stands, and its digest is of something else.
    ASSERT_TRUE((*store)->put({broken.content, broken.manifest, broken.binary}, nullptr).isOk());
  }
  std::string bytes = test::readFile(database);
  const size_t at = bytes.find("threads 1\nscratch");
  ASSERT_NE(at, std::string::npos);
  for (size_t i = at; i != std::string::npos; i = bytes.find("threads 1\nscratch", i + 1))
    bytes[i + 8] = '2';
  test::writeFile(database, bytes);
  KernelCache cache = open();
  EXPECT_EQ(found(cache, "a"), "shared of layer 0") << "the choice is the database's, its kernel the pack's";
  const std::optional<KernelCache::Hit> hit = cache.find("window a", kDevice);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->kernelLayer, 1);
  cache.noteUse(*hit);
  EXPECT_EQ(cache.counters().packHits, 1u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("holds damaged rows"), std::string::npos) << log[0];
}

TEST_F(LayersTest, ChoicesOfAllLayersAreListedWithoutMakingAFile) {
  put(first, "b", "first-b", true);
  put(first, "a", "first-a", false);
  packOf("first");
  KernelCache cache = open();
  std::vector<ChoiceSummary> choices = cache.choicesOf("window");
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].problem, "window a");
  EXPECT_EQ(choices[0].layer, 1);
  EXPECT_EQ(choices[0].templateName, "first-a");
  EXPECT_EQ(choices[0].target, "cpu");
  EXPECT_FALSE(choices[0].tuned);
  EXPECT_TRUE(choices[1].tuned);
  EXPECT_TRUE(cache.choicesOf("dense").empty());
  EXPECT_TRUE(cache.find("window b", kDevice).has_value());
  EXPECT_FALSE(std::filesystem::exists(database)) << "who only asks makes nothing";
  put(database, "a", "own-a", true);
  EXPECT_EQ(cache.choicesOf("window").size(), 3u) << "read anew";
  EXPECT_EQ(cache.choicesOf("window")[0].layer, 0);
}

// Lookups leave no folder, no database and no lock behind where there was none.
TEST_F(LayersTest, OnlyAPutOrALeaseMakesTheDatabase) {
  put(first, "a", "first-a", true);
  packOf("first");
  settings.path = folder.file("below/own.db");
  {
    KernelCache cache = open();
    EXPECT_EQ(found(cache, "a"), "first-a of layer 1");
    EXPECT_EQ(found(cache, "b"), "nothing");
    EXPECT_FALSE(cache.findRoute("family", kDevice, "window.a").has_value());
    EXPECT_EQ(cache.trouble(), "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("below")));
  {
    KernelCache cache = open();
    EXPECT_EQ(found(cache, "b"), "nothing");
    const StoredChoice choice = choiceOf("b", "own-b", true);
    ASSERT_TRUE(cache.put(kernelOf("own-b"), &choice).isOk());
    EXPECT_EQ(found(cache, "b"), "own-b of layer 0") << "what it has put, it finds";
  }
  EXPECT_TRUE(std::filesystem::exists(settings.path));
  settings.path = folder.file("leased/own.db");
  {
    KernelCache cache = open();
    EXPECT_NE(cache.lease("window b", kDevice, "default"), nullptr);
  }
  EXPECT_TRUE(std::filesystem::exists(settings.path));
  EXPECT_TRUE(log.empty()) << log.front();
}

// Another process may make the file between two lookups.
TEST_F(LayersTest, ADatabaseThatAppearsIsFound) {
  KernelCache cache = open();
  EXPECT_EQ(found(cache, "a"), "nothing");
  put(database, "a", "own-a", true);
  EXPECT_EQ(found(cache, "a"), "own-a of layer 0");
}

TEST_F(LayersTest, RoutesOfTheDatabaseComeFirst) {
  putRoute(database, "window.a", 100);
  putRoute(first, "window.a", 200);
  putRoute(first, "window.b", StoredRoute::kNever);
  packOf("first");
  KernelCache cache = open();
  EXPECT_EQ(cache.findRoute("family", kDevice, "window.a")->threshold, 100);
  EXPECT_EQ(cache.findRoute("family", kDevice, "window.b")->threshold, StoredRoute::kNever);
  EXPECT_FALSE(cache.findRoute("family", kDevice, "window.c").has_value());
  ASSERT_TRUE(cache.putRoute({"family", kDevice, "window.b", 5, "test", {}}).isOk());
  EXPECT_EQ(cache.findRoute("family", kDevice, "window.b")->threshold, 5);
}

TEST_F(LayersTest, PacksThatAreRefusedAreNamedOnceAndTheOthersServe) {
  put(first, "a", "first-a", true);
  put(second, "b", "second-b", true);
  const std::string bad = packOf("first");
  packOf("second");
  settings.packs.push_back(folder.file("missing.nsapack"));
  chmod(bad.c_str(), 0666);
  KernelCache cache = open();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(found(cache, "a"), "nothing");
    EXPECT_EQ(found(cache, "b"), "second-b of layer 1") << "layers count those that serve";
  }
  ASSERT_EQ(log.size(), 2u);
  EXPECT_NE(log[0].find("everyone may write '"), std::string::npos) << log[0];
  EXPECT_NE(log[1].find("missing.nsapack' is not used: No such file"), std::string::npos) << log[1];
  EXPECT_EQ(cache.counters().refusedPacks, 2u);
}

TEST_F(LayersTest, ADamagedRowOfAPackIsSkippedAndSaidOnce) {
  put(first, "a", "first-a", true);
  put(second, "a", "second-a", true);
  const std::string pack = packOf("first");
  packOf("second");
  std::string bytes = test::readFile(pack);
  const std::string frame("\x28\xb5\x2f\xfd", 4); // where the one kernel's zstd frame begins
  const size_t at = bytes.find(frame);
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(bytes.find(frame, at + 1), std::string::npos);
  bytes[at + 8] ^= 1;
  test::writeFile(pack, bytes);
  KernelCache cache = open();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(found(cache, "a"), "second-a of layer 2");
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("holds damaged rows; they are skipped"), std::string::npos) << log[0];
  EXPECT_GT(cache.counters().damagedRows, 0u);
}

TEST_F(LayersTest, ARequiredSignatureIsOfATrustedKey) {
  put(first, "a", "first-a", true);
  const std::string pack = packOf("first");
  const SecretKey key = SecretKey::generate();
  settings.signatures = {.requireSignature = true, .trusted = {key.publicKey()}};
  {
    KernelCache cache = open();
    EXPECT_EQ(found(cache, "a"), "nothing");
    ASSERT_EQ(log.size(), 1u);
    EXPECT_NE(log[0].find("it is not signed, and a signature is required"), std::string::npos) << log[0];
  }
  ASSERT_TRUE(signPack(pack, key).isOk());
  KernelCache cache = open();
  EXPECT_EQ(found(cache, "a"), "first-a of layer 1");
}

// A key without the requirement: a pack that it has not signed serves with a warning, one whose signature is false not.
TEST_F(LayersTest, AKeyThatIsNotRequiredIsLookedForAllTheSame) {
  put(first, "a", "first-a", true);
  const std::string pack = packOf("first");
  const SecretKey key = SecretKey::generate();
  settings.signatures.trusted = {key.publicKey()};
  {
    KernelCache cache = open();
    EXPECT_EQ(found(cache, "a"), "first-a of layer 1");
    ASSERT_EQ(log.size(), 1u);
    EXPECT_NE(log[0].find("is used although none of the trusted keys has signed it"), std::string::npos) << log[0];
  }
  log.clear();
  ASSERT_TRUE(signPack(pack, key).isOk());
  {
    KernelCache cache = open();
    EXPECT_EQ(found(cache, "a"), "first-a of layer 1");
    EXPECT_EQ(log.size(), 0u);
  }
  std::string bytes = test::readFile(pack);
  const std::string name = "signature " + key.publicKey().hex();
  const size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  bytes[at + name.size() + 5] ^= 1;
  test::writeFile(pack, bytes);
  KernelCache cache = open();
  EXPECT_EQ(found(cache, "a"), "nothing");
  EXPECT_EQ(cache.counters().refusedPacks, 1u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("its signature is not that of its digest"), std::string::npos) << log[0];
}

TEST_F(LayersTest, PacksServeWhereTheDatabaseCannotBeUsed) {
  put(first, "a", "first-a", true);
  packOf("first");
  test::writeFile(database, std::string(5000, 'x'));
  KernelCache cache = open();
  EXPECT_EQ(found(cache, "a"), "first-a of layer 1");
  EXPECT_EQ(log.size(), 1u);
}

TEST(CacheSettings, PathsComeFromTheOptions) {
  EngineOptions options;
  options.cachePath = "/own.db";
  options.cachePacks = "/a.nsapack:b.nsapack";
  const test::Scratch folder;
  const PublicKey key = SecretKey::generate().publicKey();
  options.cacheKeys = folder.write("k.public", key.text());
  options.requireSignature = true;
  options.cacheMaxBytes = 7;
  std::vector<std::string> warnings;
  const Result<CacheSettings> settings = settingsOf(options, warnings);
  ASSERT_TRUE(settings) << settings.status().toString();
  EXPECT_EQ(settings->path, "/own.db");
  ASSERT_GE(settings->packs.size(), 2u);
  EXPECT_EQ(settings->packs[0], "/a.nsapack");
  EXPECT_EQ(settings->packs[1], "b.nsapack");
  EXPECT_EQ(settings->signatures.trusted, std::vector{key});
  EXPECT_TRUE(settings->signatures.requireSignature);
  EXPECT_EQ(settings->maxBytes, 7);
  options.cachePacks = "none";
  EXPECT_TRUE(settingsOf(options, warnings)->packs.empty());
  for (const char *broken : {":", "a:", ":a", "a::b"}) {
    options.cachePacks = broken;
    EXPECT_EQ(settingsOf(options, warnings).status().error().field, "cache_packs") << broken;
    options.cachePacks = "";
    options.cacheKeys = broken;
    EXPECT_EQ(settingsOf(options, warnings).status().error().field, "cache_keys") << broken;
    options.cacheKeys = "";
  }
}

TEST(CacheSettings, InstalledPacksAreTakenByName) {
  const test::Scratch folder;
  for (const char *name : {"b.nsapack", "a.nsapack", "a.nsapack.txt", "c.db"})
    folder.write(name, "");
  EXPECT_EQ(packsIn(folder.path()), (std::vector<std::string>{folder.file("a.nsapack"), folder.file("b.nsapack")}));
  EXPECT_TRUE(packsIn(folder.file("none")).empty());
  EXPECT_TRUE(installedPackFolder().ends_with("/share/nsa/packs")) << installedPackFolder();
}

// The whole way: a pack in another folder, no database before and after, no compiler, policy `fail`.
TEST(Packs, ServeAnEngineThatMayNotCompile) {
  const test::Scratch folder;
  test::c_api::Call call(NSA_LAYOUT_DENSE);
  const std::string made = folder.file("made.db"), pack = folder.file("kernels.nsapack");
  test::storeKernel(made, call.internalSpec(), call.internalMaxima(), {}, test::countingCode());
  {
    Result<CacheFile> from = CacheFile::open(made);
    ASSERT_TRUE(from);
    ASSERT_TRUE(writePack(*from, pack, {.source = "test"}));
  }
  std::filesystem::create_directory(folder.file("deployed"));
  std::filesystem::rename(pack, folder.file("deployed/kernels.nsapack"));
  std::filesystem::remove(made);
  const std::string packs =
      folder.file("deployed/kernels.nsapack") + ":" + folder.write("damaged.nsapack", std::string(5000, 'x'));
  {
    test::c_api::Engine engine(folder.file("cache/kernels.db"), [&](nsa_engine_options &options) {
      options.cache_packs = packs.c_str();
      options.compiler_path = "absent.so"; // which no loader finds
    });
    ASSERT_EQ(engine.status, NSA_OK) << engine.error.message;
    for (int i = 0; i < 2; ++i) {
      char *text = nullptr;
      EXPECT_EQ(nsa_explain(engine.handle, &call.spec, &call.maxima, &text, nullptr), NSA_OK);
      nsa_free(text);
    }
    EXPECT_EQ(engine.stats().cache_pack_hits, 0u) << "what would serve does not serve";
    const test::c_api::Plan plan(engine, call);
    ASSERT_NE(plan.handle, nullptr) << plan.error.message;
    EXPECT_EQ(engine.stats().cache_pack_hits, 1u);
    EXPECT_EQ(engine.stats().cache_refused_packs, 1u);
    ASSERT_EQ(engine.log.size(), 1u);
    EXPECT_NE(engine.log[0].find("damaged.nsapack"), std::string::npos) << engine.log[0];
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("cache"))) << "a process that only reads makes nothing";
}

} // namespace
