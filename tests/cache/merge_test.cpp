// Merging, comparing and verifying whole files.
#include "cache/difference.h"
#include "cache/statistics.h"
#include "cache/verification.h"
#include "tests/cache/pack_fixture.h"

namespace nsa {
namespace {

class MergeTest : public PackTest {
protected:
  std::string other = scratch.file("other.db");

  MergeReport merge(const std::string &from, Prefer prefer = Prefer::kDestination) {
    Result<CacheFile> file = CacheFile::open(from);
    EXPECT_TRUE(file) << file.status().toString();
    Result<MergeReport> report = openStore()->merge(*file, prefer);
    EXPECT_TRUE(report) << report.status().toString();
    return report ? std::move(*report) : MergeReport();
  }
  // One choice for the problem of `problem` that names the kernel of `kernel`.
  void put(const std::string &file, int problem, int kernel, bool tuned) {
    std::string warning;
    StoredChoice choice = makeChoice(problem, tuned);
    choice.content = makeKernel(kernel, 0).content;
    ASSERT_TRUE(openStore(file, warning)->put(makeKernel(kernel), &choice).isOk());
  }
  std::string chosen(int problem) const {
    const StoredChoice choice = makeChoice(problem, true);
    const auto found = openStore()->findChoice(choice.problem, choice.device);
    return found && found->has_value() ? (*found)->content : "";
  }
  CacheDifference difference(const std::string &a, const std::string &b) {
    Result<CacheFile> first = CacheFile::open(a), second = CacheFile::open(b);
    EXPECT_TRUE(first && second);
    Result<CacheDifference> found = compareCaches(*first, *second);
    EXPECT_TRUE(found);
    return *found;
  }
};

TEST_F(MergeTest, TakesWhatIsNew) {
  fill({1}, path);
  fill({1, 2}, other);
  const MergeReport report = merge(other);
  EXPECT_EQ(report.kernels, 1);
  EXPECT_EQ(report.addedChoices, 1);
  EXPECT_EQ(report.keptChoices, 1);
  EXPECT_EQ(report.addedRoutes, 1);
  EXPECT_EQ(report.keptRoutes, 1);
  EXPECT_TRUE(report.conflicts.empty()) << "what is alike is no conflict";
  std::unique_ptr<KernelStore> store = openStore();
  expectKernel(*store, 1);
  expectKernel(*store, 2);
  const StoredChoice choice = makeChoice(2, true);
  EXPECT_EQ(**store->findChoice(choice.problem, choice.device), choice) << "with its evidence";
  store.reset();
  EXPECT_TRUE(difference(path, other).isNone());
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(sql("SELECT count(*) FROM uses"), "2");
}

TEST_F(MergeTest, TunedBeatsUntuned) {
  put(path, 1, 1, false);
  put(other, 1, 2, true);
  put(path, 3, 3, true);
  put(other, 3, 4, false);
  const MergeReport report = merge(other);
  EXPECT_EQ(report.replacedChoices, 1);
  EXPECT_EQ(report.keptChoices, 1);
  EXPECT_TRUE(report.conflicts.empty());
  EXPECT_EQ(chosen(1), makeKernel(2).content);
  EXPECT_EQ(chosen(3), makeKernel(3).content);
  merge(other, Prefer::kSource);
  EXPECT_EQ(chosen(3), makeKernel(3).content) << "also for who prefers the source";
}

TEST_F(MergeTest, OfTwoTunedTheCallerChooses) {
  put(path, 1, 1, true);
  put(other, 1, 2, true);
  MergeReport report = merge(other);
  ASSERT_EQ(report.conflicts.size(), 1u);
  EXPECT_FALSE(report.conflicts[0].tookSource);
  EXPECT_EQ(report.conflicts[0].destination, makeKernel(1).content);
  EXPECT_EQ(report.conflicts[0].source, makeKernel(2).content);
  EXPECT_EQ(chosen(1), makeKernel(1).content);
  report = merge(other, Prefer::kSource);
  ASSERT_EQ(report.conflicts.size(), 1u);
  EXPECT_TRUE(report.conflicts[0].tookSource);
  EXPECT_EQ(chosen(1), makeKernel(2).content);
}

TEST_F(MergeTest, RoutesOfBothAreConflicts) {
  std::string warning;
  ASSERT_TRUE(openStore()->putRoute(makeRoute(1, 100)).isOk());
  ASSERT_TRUE(openStore(other, warning)->putRoute(makeRoute(1, -1)).isOk());
  const auto threshold = [&] {
    const StoredRoute route = makeRoute(1);
    return (*openStore()->findRoute(route.family, route.device, route.name))->threshold;
  };
  EXPECT_EQ(merge(other).conflicts.size(), 1u);
  EXPECT_EQ(threshold(), 100);
  EXPECT_EQ(merge(other, Prefer::kSource).replacedRoutes, 1);
  EXPECT_EQ(threshold(), -1);
}

TEST_F(MergeTest, DamagedKernelsAreLeftOutAndMended) {
  fill({1, 2}, path);
  fill({1, 2, 3}, other);
  sql("UPDATE kernels SET digest = zeroblob(32) WHERE content = '" + makeKernel(1).content + "'");
  runSql(other, "UPDATE kernels SET digest = zeroblob(32) WHERE content = '" + makeKernel(3).content + "'");
  const MergeReport report = merge(other);
  EXPECT_EQ(report.damaged, std::vector<std::string>{makeKernel(3).content});
  EXPECT_EQ(report.kernels, 1) << "ours was damaged and theirs is not";
  expectKernel(*openStore(), 1);
  EXPECT_EQ(chosen(3), "");
}

// A choice that names it would keep the problem from being served by either.
TEST_F(MergeTest, AChoiceWithoutItsKernelGivesWay) {
  for (const bool tuned : {true, false}) {
    SCOPED_TRACE(tuned);
    path = scratch.file(tuned ? "to tuned.db" : "to.db");
    other = scratch.file(tuned ? "from tuned.db" : "from.db");
    for (const int problem : {1, 3, 5})
      put(path, problem, problem, true);
    put(other, 1, 2, tuned);
    put(other, 3, 4, tuned);
    put(other, 5, 6, tuned);
    put(other, 9, 3, tuned); // mends ours
    sql("UPDATE kernels SET digest = zeroblob(32) WHERE content IN ('" + makeKernel(1).content + "', '" +
        makeKernel(3).content + "')");
    const MergeReport report = merge(other);
    EXPECT_EQ(chosen(1), makeKernel(2).content);
    EXPECT_EQ(chosen(3), makeKernel(3).content) << "whole in the source";
    EXPECT_EQ(chosen(5), makeKernel(5).content);
    EXPECT_EQ(report.lost, std::vector<std::string>{makeKernel(1).content});
    EXPECT_EQ(report.replacedChoices, 1);
    EXPECT_EQ(report.keptChoices, 2);
    EXPECT_TRUE(report.damaged.empty());
    ASSERT_EQ(report.conflicts.size(), tuned ? 3u : 0u);
    if (tuned)
      EXPECT_TRUE(report.conflicts[0].tookSource);
    std::unique_ptr<KernelStore> store = openStore();
    for (const int number : {2, 3, 5})
      expectKernel(*store, number);
  }
}

TEST_F(MergeTest, APackIsASource) {
  makePack(3);
  const std::string database = path;
  path = scratch.file("fresh.db");
  EXPECT_EQ(merge(packPath).kernels, 3);
  EXPECT_TRUE(difference(path, packPath).isNone());
  EXPECT_TRUE(difference(path, database).isNone());
}

TEST_F(MergeTest, DifferencesAreNamed) {
  fill({1, 2}, path);
  fill({2, 3}, other);
  runSql(other, "UPDATE routes SET threshold = 7 WHERE family = '" + makeRoute(2).family + "'");
  const CacheDifference found = difference(path, other);
  EXPECT_EQ(found.kernels.onlyFirst, std::vector<std::string>{makeKernel(1).content});
  EXPECT_EQ(found.kernels.onlySecond, std::vector<std::string>{makeKernel(3).content});
  EXPECT_EQ(found.kernels.same, 1);
  EXPECT_EQ(found.choices.onlyFirst, std::vector<std::string>{"window dtype=bf16 | problem=1 on gpu sm_90a"});
  EXPECT_EQ(found.choices.same, 1);
  EXPECT_EQ(found.routes.changed.size(), 1u);
  EXPECT_FALSE(found.isNone());
}

TEST_F(MergeTest, StatisticsCount) {
  makePack(3);
  ASSERT_TRUE(openStore()->put(makeKernel(9), nullptr).isOk());
  put(path, 4, 4, false);
  Result<CacheFile> file = CacheFile::open(path);
  ASSERT_TRUE(file);
  Result<CacheStatistics> counts = summarizeCache(*file);
  ASSERT_TRUE(counts) << counts.status().toString();
  EXPECT_EQ(counts->kernels, 5);
  EXPECT_EQ(counts->unnamedKernels, 1);
  EXPECT_EQ(counts->choices, 4);
  EXPECT_EQ(counts->tunedChoices, 3);
  EXPECT_EQ(counts->measurements, 8);
  EXPECT_EQ(counts->routes, 3);
  EXPECT_EQ(counts->binaryBytes, 5 * 20000);
  EXPECT_EQ(counts->choicesByDevice, (std::map<std::string, int64_t>{{"gpu sm_90a", 4}}));
  EXPECT_EQ(counts->choicesByOperator, (std::map<std::string, int64_t>{{"window", 4}}));
  EXPECT_EQ(counts->kernelsByTarget, (std::map<std::string, int64_t>{{"sm_90a", 5}}));
  EXPECT_TRUE(counts->lastUse.has_value());
  Result<CacheFile> pack = CacheFile::open(packPath);
  ASSERT_TRUE(pack);
  counts = summarizeCache(*pack);
  ASSERT_TRUE(counts) << counts.status().toString();
  EXPECT_EQ(counts->kernels, 3);
  EXPECT_FALSE(counts->lastUse.has_value()) << "a pack does not know";
}

TEST_F(MergeTest, VerifyingAGoodFileFindsNothing) {
  makePack();
  for (const std::string &file : {path, packPath}) {
    const Verification found = verifyCache(file, {});
    EXPECT_TRUE(found.findings.empty()) << found.findings.front();
    EXPECT_EQ(found.kernels, 5);
    EXPECT_EQ(found.choices, 5);
    EXPECT_EQ(found.routes, 5);
  }
}

TEST_F(MergeTest, VerifyingNamesEveryFinding) {
  makePack();
  const std::string good = readFile(packPath);
  const struct {
    const char *change;
    std::vector<std::string> findings; // how they begin
  } rows[] = {
      {"UPDATE kernels SET binary = zeroblob(100) WHERE content = (SELECT min(content) FROM kernels)", {"kernel "}},
      {"UPDATE kernels SET config = 'a=1' WHERE content = (SELECT min(content) FROM kernels)",
       {"kernel ", "the digest is not that of the rows"}},
      {"UPDATE evidence SET detail = 'x'", {"the evidence digest is not that of the evidence"}},
      {"UPDATE routes SET threshold = 9", {"the digest is not that of the rows"}},
      {"DELETE FROM kernels WHERE content = (SELECT min(content) FROM kernels)",
       {"a row of 'choices' names a row of 'kernels'", "choice '", "the digest is not that of the rows"}},
      {"UPDATE choices SET problem = 'dense' || substr(problem, 7) WHERE problem LIKE '%=1';"
       "UPDATE evidence SET problem = 'dense' || substr(problem, 7) WHERE problem LIKE '%=1'",
       {"choice 'dense dtype=bf16 | problem=1'", "the evidence digest", "the digest"}},
      {"INSERT INTO pack VALUES ('signature ' || lower(hex(zeroblob(32))), zeroblob(64))",
       {"the signature of key 0000"}},
  };
  for (const auto &row : rows) {
    SCOPED_TRACE(row.change);
    writeFile(packPath, good);
    runSql(packPath, std::string("PRAGMA foreign_keys = OFF;") + row.change);
    const Verification found = verifyCache(packPath, {});
    ASSERT_EQ(found.findings.size(), row.findings.size()) << testing::PrintToString(found.findings);
    for (size_t i = 0; i < row.findings.size(); ++i)
      EXPECT_TRUE(found.findings[i].starts_with(row.findings[i])) << found.findings[i];
  }
}

TEST_F(MergeTest, VerifyingAsksForSignaturesOfTrustedKeys) {
  makePack();
  const SecretKey ours = SecretKey::generate(), theirs = SecretKey::generate();
  EXPECT_EQ(verifyCache(packPath, {.requireSignature = true}).findings, std::vector<std::string>{"it is not signed"});
  ASSERT_TRUE(signPack(packPath, theirs).isOk());
  const SignatureRules rules{.trusted = {ours.publicKey()}};
  EXPECT_EQ(verifyCache(packPath, rules).findings, std::vector<std::string>{"no signature of a trusted key holds"});
  EXPECT_EQ(verifyCache(packPath, {}).signers, std::vector<std::string>{theirs.publicKey().hex()});
  ASSERT_TRUE(signPack(packPath, ours).isOk());
  EXPECT_TRUE(verifyCache(packPath, rules).findings.empty());
  EXPECT_EQ(verifyCache(path, rules).findings, std::vector<std::string>{"it is a database, and only packs are signed"});
  EXPECT_EQ(verifyCache(scratch.file("none"), {}).findings.size(), 1u);
}

TEST_F(MergeTest, FilesThatCannotBeOpenedAreErrors) {
  EXPECT_NE(CacheFile::open(scratch.file("none")).status().toString().find("there is no kernel database or pack"),
            std::string::npos);
  const std::string text = scratch.write("text", std::string(5000, 'x'));
  EXPECT_NE(CacheFile::open(text).status().toString().find("it is no kernel database"), std::string::npos);
  makePack();
  runSql(packPath, "UPDATE choices SET tuned = 0");
  EXPECT_NE(CacheFile::open(packPath).status().toString().find("its digest is not that"), std::string::npos);
}

} // namespace
} // namespace nsa
