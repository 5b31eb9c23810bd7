// Packs: made alike from alike rows, read from anywhere, refused or skipped when anything about them was changed.
#include "tests/cache/fault_vfs.h"
#include "tests/cache/pack_fixture.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace nsa {
namespace {

TEST_F(PackTest, RoundTrip) {
  makePack(3);
  std::unique_ptr<Pack> pack = openPack();
  for (int i = 0; i < 3; ++i) {
    expectKernel(*pack, i);
    const StoredChoice choice = makeChoice(i, true);
    const std::optional<StoredChoice> found = pack->findChoice(choice.problem, choice.device);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, choice);
    const StoredRoute route = makeRoute(i);
    EXPECT_EQ(pack->findRoute(route.family, route.device, route.name), route);
  }
  EXPECT_FALSE(pack->findKernel("nothing").has_value());
  EXPECT_FALSE(pack->findChoice("nothing", "nowhere").has_value());
  EXPECT_EQ(pack->counters().hits, 6u);
  EXPECT_EQ(pack->counters().misses, 2u);
  std::vector<ChoiceSummary> choices;
  pack->summarizeChoices("window", 2, choices);
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[0].layer, 2);
}

TEST_F(PackTest, TheSameRowsGiveTheSameBytes) {
  const std::string first = scratch.file("first.db"), second = scratch.file("second.db");
  fill({0, 1, 2, 3}, first);
  fill({3, 1}, second);
  fill({7}, second);
  fill({0, 2}, second);
  runSql(second, "DELETE FROM evidence WHERE problem LIKE '%=7'; DELETE FROM choices WHERE problem LIKE '%=7';"
                 "DELETE FROM routes WHERE family LIKE '%=7'; VACUUM"); // its kernel is left, and no row names it
  const std::string a = scratch.file("a.nsapack"), b = scratch.file("b.nsapack"), c = scratch.file("c.nsapack");
  ASSERT_TRUE(exportFrom(first, a));
  ASSERT_TRUE(exportFrom(second, b));
  ASSERT_TRUE(exportFrom(a, c)) << "a pack is a source as well";
  EXPECT_TRUE(readFile(a) == readFile(b));
  EXPECT_TRUE(readFile(a) == readFile(c));
  EXPECT_EQ(readFile(a).find(directory), std::string::npos) << "no path is in it";
}

TEST_F(PackTest, IsReadFromAnyFolderAndMakesNothingThere) {
  makePack();
  const std::string folder = scratch.file("elsewhere?#%20");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::filesystem::rename(packPath, folder + "/k.nsapack");
  packPath = folder + "/k.nsapack";
  const std::string bytes = readFile(packPath);
  chmod(packPath.c_str(), 0444);
  chmod(folder.c_str(), 0555);
  expectKernel(*openPack(), 1);
  chmod(folder.c_str(), 0700);
  EXPECT_TRUE(readFile(packPath) == bytes);
  std::filesystem::directory_iterator entries(folder);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(PackTest, FiltersTakeWhatTheyName) {
  {
    std::unique_ptr<KernelStore> store = openStore();
    StoredChoice other = makeChoice(1, true), untuned = makeChoice(2, false), elsewhere = makeChoice(3, true);
    other.problem = "dense dtype=bf16 | problem=1";
    elsewhere.device = "cpu x86-64-v4";
    ASSERT_TRUE(store->put(makeKernel(1), &other).isOk());
    ASSERT_TRUE(store->put(makeKernel(2), &untuned).isOk());
    ASSERT_TRUE(store->put(makeKernel(3), &elsewhere).isOk());
    ASSERT_TRUE(store->put(makeKernel(4), nullptr).isOk());
    ASSERT_TRUE(store->putRoute(makeRoute(1)).isOk());
  }
  const auto counts = [&](const PackRequest &request) {
    PackRequest replacing = request;
    replacing.existing = ReplacingFile::Existing::kReplace;
    const Result<PackReport> report = exportFrom(path, packPath, replacing);
    EXPECT_TRUE(report) << report.status().toString();
    return report ? std::to_string(report->kernels) + " " + std::to_string(report->routes) : "";
  };
  EXPECT_EQ(counts({}), "3 1") << "a kernel that no choice names stays behind";
  EXPECT_EQ(counts({.operators = {"dense"}}), "1 0");
  EXPECT_EQ(counts({.operators = {"dense", "window"}}), "3 1");
  EXPECT_EQ(counts({.device = "cpu"}), "1 0");
  EXPECT_EQ(counts({.tunedOnly = true}), "2 1");
  const Result<PackReport> nothing = exportFrom(path, scratch.file("none.nsapack"), {.device = "tpu"});
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.status().toString().find("a pack would be empty"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(scratch.file("none.nsapack")));
}

TEST_F(PackTest, ABriefOneHasNoEvidenceOfChoices) {
  {
    std::unique_ptr<KernelStore> store = openStore();
    StoredChoice choice = makeChoice(1, true);
    choice.evidence = {{"attention", "rows=1", "measured", 2, 1, ""},
                       {"attention", "rows=2", "winner", 1, 0.5, ""},
                       {"attention", "rows=4", "pruned", 0, 0, "not compiled"}};
    ASSERT_TRUE(store->put(makeKernel(1), &choice).isOk());
  }
  ASSERT_TRUE(exportFrom(path, packPath, {.isBrief = true}));
  Result<CacheFile> pack = CacheFile::open(packPath);
  ASSERT_TRUE(pack) << pack.status().toString();
  const Result<std::vector<StoredChoice>> choices = pack->choices();
  ASSERT_TRUE(choices) << choices.status().toString();
  ASSERT_EQ(choices->size(), 1u);
  EXPECT_TRUE((*choices)[0].evidence.empty());
  EXPECT_TRUE((*choices)[0].tuned);
}

TEST_F(PackTest, KernelsMayBeCompressedAnew) {
  StoredKernel kernel = makeKernel(1);
  {
    std::unique_ptr<KernelStore> store = openStore();
    StoredChoice choice = makeChoice(1, true);
    // Instructions of 16 bytes of which few are common, as in machine code.
    std::mt19937 random(1); // NOLINT(bugprone-random-generator-seed): the same kernel in every run
    for (size_t i = 0; i + 16 <= kernel.binary.size(); i += 16) {
      const uint32_t word = random() % 97 * (random() % 97);
      for (size_t byte = 0; byte < 16; ++byte)
        kernel.binary[i + byte] = static_cast<std::byte>(word * (byte + 1) >> 3);
    }
    ASSERT_TRUE(store->put(kernel, &choice).isOk());
  }
  const auto bytesAt = [&](int level) {
    EXPECT_TRUE(exportFrom(path, packPath, {.compression = level, .existing = ReplacingFile::Existing::kReplace}));
    return std::stoll(runSql(packPath, "SELECT length(binary) FROM kernels"));
  };
  const auto stored = bytesAt(0);
  EXPECT_GT(bytesAt(1), stored);
  EXPECT_LT(bytesAt(19), stored);
  Result<CacheFile> pack = CacheFile::open(packPath);
  ASSERT_TRUE(pack) << pack.status().toString();
  const Result<std::optional<StoredKernel>> packed = pack->kernel(kernel.content);
  ASSERT_TRUE(packed && *packed) << packed.status().toString();
  EXPECT_TRUE((*packed)->binary == kernel.binary);
  EXPECT_EQ(runSql(packPath, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"), "0")
      << "nothing is looked up by content";
}

TEST_F(PackTest, AFileOfThatNameStaysUnlessItIsToBeReplaced) {
  makePack(1);
  const std::string bytes = readFile(packPath);
  fill({5}, path);
  const Result<PackReport> report = exportFrom(path, packPath);
  ASSERT_FALSE(report);
  EXPECT_NE(report.status().toString().find("exists already"), std::string::npos) << report.status().toString();
  EXPECT_TRUE(readFile(packPath) == bytes);
  ASSERT_TRUE(exportFrom(path, packPath, {.existing = ReplacingFile::Existing::kReplace}));
  expectKernel(*openPack(), 5);
}

TEST_F(PackTest, ADamagedKernelIsLeftOutAndNamed) {
  fill({0, 1}, path);
  sql("UPDATE kernels SET digest = zeroblob(32) WHERE content = '" + makeKernel(1).content + "'");
  const Result<PackReport> report = exportFrom(path, packPath);
  ASSERT_TRUE(report) << report.status().toString();
  EXPECT_EQ(report->damaged, std::vector<std::string>{makeKernel(1).content});
  EXPECT_EQ(report->choices, 1);
  expectKernel(*openPack(), 0);
}

TEST_F(PackTest, AChangedBlobIsOneSkippedRow) {
  makePack();
  runSql(packPath, "UPDATE kernels SET binary = CAST(substr(binary, 1, 500) || x'00112233' || substr(binary, 505) AS "
                   "BLOB) WHERE content = '" +
                       makeKernel(2).content + "'");
  std::unique_ptr<Pack> pack = openPack();
  EXPECT_FALSE(pack->findKernel(makeKernel(2).content).has_value());
  EXPECT_EQ(pack->counters().damagedRows, 1u);
  expectKernel(*pack, 3);
}

TEST_F(PackTest, WhateverElseIsChangedRefusesThePack) {
  makePack();
  const std::string good = readFile(packPath);
  const struct {
    const char *change, *reason;
  } rows[] = {
      {"UPDATE kernels SET manifest = replace(manifest, 'threads 128', 'threads 256')", "its digest is not that"},
      {"UPDATE kernels SET config = 'key_tile=1'", "its digest is not that"},
      {"UPDATE kernels SET digest = zeroblob(32)", "its digest is not that"},
      {"UPDATE choices SET tuned = 0", "its digest is not that"},
      {"UPDATE choices SET content = (SELECT max(content) FROM kernels)", "its digest is not that"},
      {"DELETE FROM choices WHERE problem LIKE '%=1'", "its digest is not that"},
      {"UPDATE routes SET threshold = -1", "its digest is not that"},
      {"UPDATE pack SET value = CAST('other' AS BLOB) WHERE key = 'source'", "its digest is not that"},
      {"UPDATE pack SET value = zeroblob(32) WHERE key = 'evidence_digest'", "its digest is not that"},
      {"UPDATE pack SET value = zeroblob(31) WHERE key = 'digest'", "'digest' must have 32 bytes"},
      {"DELETE FROM pack WHERE key = 'evidence_digest'", "'evidence_digest' is missing"},
      {"UPDATE pack SET value = CAST('2' AS BLOB) WHERE key = 'format'", "its format is '2', this library reads 1"},
      {"INSERT INTO pack VALUES ('extra', x'00')", "'extra' is unknown"},
      {"INSERT INTO pack VALUES ('signature abc', zeroblob(64))", "must name a public key"},
      {"CREATE TRIGGER t AFTER INSERT ON choices BEGIN DELETE FROM choices; END", "its tables are not those of"},
      {"CREATE VIEW v AS SELECT 1", "its tables are not those of"},
      {"DROP TABLE routes", "it is damaged"},
      {"PRAGMA user_version = 4", "it was written by a newer version of this library"},
      {"PRAGMA application_id = 1", "it is no pack"},
  };
  for (const auto &row : rows) {
    SCOPED_TRACE(row.change);
    writeFile(packPath, good);
    runSql(packPath, std::string("PRAGMA foreign_keys = OFF; ") + row.change);
    ASSERT_TRUE(readFile(packPath) != good);
    EXPECT_NE(refusal().find(row.reason), std::string::npos) << refusal();
    EXPECT_NE(refusal().find("pack '" + packPath + "' is not used"), std::string::npos) << refusal();
  }
}

// Text in the place of a number would read alike.
TEST_F(PackTest, AValueOfAnotherTypeRefusesThePack) {
  makePack();
  runSql(packPath, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')')"
                   " WHERE name = 'routes'; PRAGMA writable_schema = RESET;");
  runSql(packPath, "UPDATE routes SET threshold = x'00'");
  EXPECT_NE(refusal().find("is not used"), std::string::npos);
}

TEST_F(PackTest, WhatIsNoPackIsRefused) {
  EXPECT_NE(refusal().find("No such file"), std::string::npos);
  writeFile(packPath, "");
  EXPECT_NE(refusal().find("it is no pack"), std::string::npos) << refusal();
  writeFile(packPath, std::string(5000, 'x'));
  EXPECT_NE(refusal().find("it is no pack"), std::string::npos) << refusal();
  fill({1}, path);
  packPath = path;
  EXPECT_NE(refusal().find("it is no pack"), std::string::npos) << "a database may change under its reader";
  packPath = directory;
  EXPECT_NE(refusal().find("it is no regular file"), std::string::npos) << refusal();
}

TEST_F(PackTest, ADatabaseStoreLeavesAPackAlone) {
  makePack();
  const std::string bytes = readFile(packPath);
  std::string warning;
  EXPECT_EQ(openStore(packPath, warning)->path(), ":memory:");
  EXPECT_NE(warning.find("it is no kernel database"), std::string::npos) << warning;
  EXPECT_TRUE(readFile(packPath) == bytes);
}

TEST_F(PackTest, WhatOthersMayWriteIsRefused) {
  makePack();
  chmod(packPath.c_str(), 0666);
  EXPECT_NE(refusal().find("everyone may write '"), std::string::npos) << refusal();
  chmod(packPath.c_str(), 0644);
  chmod(directory.c_str(), 0777);
  EXPECT_NE(refusal().find("everyone may write folder '"), std::string::npos) << refusal();
  chmod(directory.c_str(), 0700);
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown(packPath.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal().find("' belongs to another user (uid 65534"), std::string::npos) << refusal();
  ASSERT_EQ(chown(packPath.c_str(), 0, 0), 0);
  ASSERT_EQ(chown(directory.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal().find("' belongs to another user"), std::string::npos) << refusal();
  ASSERT_EQ(chown(directory.c_str(), 0, 0), 0);
}

TEST_F(PackTest, SurvivesAFork) {
  makePack(3);
  std::unique_ptr<Pack> pack = openPack();
  expectKernel(*pack, 0);
  expectGoodEnd(startProcess([&] {
    expectKernel(*pack, 1);
    expectGoodEnd(startProcess([&] { expectKernel(*pack, 2); }));
  }));
  expectKernel(*pack, 1);
  EXPECT_EQ(pack->trouble(), "");
}

TEST_F(PackTest, AnotherFileAfterAForkIsNotTakenForIt) {
  makePack(3);
  std::unique_ptr<Pack> pack = openPack();
  expectGoodEnd(startProcess([] {}));
  fill({9}, path);
  ASSERT_TRUE(exportFrom(path, packPath, {.existing = ReplacingFile::Existing::kReplace}));
  EXPECT_FALSE(pack->findKernel(makeKernel(1).content).has_value());
  EXPECT_NE(pack->trouble().find("it was replaced by another one in use"), std::string::npos) << pack->trouble();
}

// A start must not pay for kernels that it does not load.
TEST_F(PackTest, OpeningReadsNoBinaries) {
  constexpr int kCount = 400;
  constexpr size_t kBytes = 40000; // half of it noise: 8 MiB in all
  {
    std::unique_ptr<KernelStore> store = openStore();
    for (int i = 0; i < kCount; ++i) {
      const StoredChoice choice = makeChoice(i, true);
      ASSERT_TRUE(store->put(makeKernel(i, kBytes), &choice).isOk());
    }
  }
  ASSERT_TRUE(exportFrom(path, packPath));
  const auto size = static_cast<double>(std::filesystem::file_size(packPath));
  const test::FaultVfs vfs;
  const auto timed = [](auto body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  };
  std::unique_ptr<Pack> pack;
  test::FaultVfs::disarm();
  const double openMs = timed([&] { pack = openPack(); });
  const double opened = static_cast<double>(test::FaultVfs::bytesRead());
  EXPECT_LT(opened, 0.4 * size) << "of kernels only their first pages";
  test::FaultVfs::disarm();
  const double findMs = timed([&] { expectKernel(*pack, 17, kBytes); });
  EXPECT_LT(static_cast<double>(test::FaultVfs::bytesRead()), 0.02 * size);
  std::vector<ChoiceSummary> choices;
  const double listMs = timed([&] { pack->summarizeChoices("window", 1, choices); });
  EXPECT_EQ(choices.size(), static_cast<size_t>(kCount));
  std::printf(
      "%.1f MiB: opened in %.2f ms by reading %.1f MiB, a kernel found in %.2f ms, %d choices listed in %.2f ms\n",
      size / 1048576, openMs, opened / 1048576, findMs, kCount, listMs);
}

// The old file stays what it was for who has it open.
TEST_F(PackTest, AReplacedFileServesUntilItIsClosed) {
  makePack(3);
  std::unique_ptr<Pack> pack = openPack();
  fill({9}, path);
  ASSERT_TRUE(exportFrom(path, packPath, {.existing = ReplacingFile::Existing::kReplace}));
  expectKernel(*pack, 1);
  expectKernel(*openPack(), 9);
}

} // namespace
} // namespace nsa
