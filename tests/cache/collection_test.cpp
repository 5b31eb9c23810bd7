// Uses, and the collection that follows them: kernels that were not used for long go first, and tuned kernels stay.
#include "cache/cache_file.h"
#include "cache/rows/use_rows.h"
#include "tests/cache/store_fixture.h"

#include <filesystem>
#include <limits>

namespace nsa {
namespace {

class CollectionTest : public StoreTest {
protected:
  void fill(int count, bool tuned = false) {
    std::unique_ptr<KernelStore> store = openStore();
    for (int i = 0; i < count; ++i) {
      const StoredChoice choice = makeChoice(i, tuned);
      ASSERT_TRUE(store->put(makeKernel(i), &choice).isOk());
    }
  }
  void setDay(int number, int64_t day) {
    sql("UPDATE uses SET day = " + std::to_string(day) + " WHERE content = '" + makeKernel(number).content + "'");
  }
  std::string dayOf(int number) const {
    return sql("SELECT day FROM uses WHERE content = '" + makeKernel(number).content + "'");
  }
  std::vector<int> numbersOf(const CollectionReport &report) const {
    std::vector<int> numbers;
    for (const CollectedKernel &each : report.removed)
      for (int i = 0; i < 100; ++i)
        if (each.kernel.content == makeKernel(i, 0).content)
          numbers.push_back(i);
    return numbers;
  }
  CollectionReport collect(const CollectionRules &rules) {
    Result<CollectionReport> report = openStore()->collect(rules);
    EXPECT_TRUE(report) << report.status().toString();
    return report ? std::move(*report) : CollectionReport();
  }
  CollectionReport wouldCollect(const CollectionRules &rules) {
    Result<CacheFile> file = CacheFile::open(path);
    EXPECT_TRUE(file) << file.status().toString();
    Result<CollectionReport> report = file ? file->wouldCollect(rules) : file.status();
    EXPECT_TRUE(report) << report.status().toString();
    return report ? std::move(*report) : CollectionReport();
  }
  const std::string now = std::to_string(today());
};

TEST_F(CollectionTest, WhatIsStoredAndServedIsUsedToday) {
  fill(2);
  EXPECT_EQ(dayOf(0), now);
  setDay(0, 100);
  setDay(1, 100);
  {
    std::unique_ptr<KernelStore> store = openStore();
    expectKernel(*store, 0);
    EXPECT_EQ(dayOf(0), "100") << "reading writes nothing";
  }
  EXPECT_EQ(dayOf(0), now);
  EXPECT_EQ(dayOf(1), "100");
  // With the next put, too.
  std::unique_ptr<KernelStore> store = openStore();
  expectKernel(*store, 1);
  ASSERT_TRUE(store->put(makeKernel(2), nullptr).isOk());
  EXPECT_EQ(dayOf(1), now);
}

TEST_F(CollectionTest, AUseIsWrittenOncePerDay) {
  fill(1);
  const std::string version = sql("PRAGMA data_version");
  const auto bytes = [&] { return readFile(path) + readFile(path + "-wal"); };
  const std::string before = bytes();
  for (int i = 0; i < 3; ++i)
    expectKernel(*openStore(), 0);
  EXPECT_TRUE(bytes() == before) << "the file says so already";
}

// A clock that was ahead for a day must not keep a kernel for ever.
TEST_F(CollectionTest, AUseOfTheFutureIsCorrected) {
  fill(2);
  setDay(0, today() + 5000);
  setDay(1, today() - 1);
  expectKernel(*openStore(), 0);
  EXPECT_EQ(dayOf(0), now);
  setDay(0, today() + 5000);
  CollectionRules rules;
  rules.maxIdleDays = 0;
  EXPECT_EQ(numbersOf(collect(rules)), std::vector<int>{1}) << "one of the future counts as used today";
  EXPECT_EQ(dayOf(0), now) << "and grows old from now on";
}

TEST_F(CollectionTest, ADayThatNoClockShowsIsNoUse) {
  fill(2);
  setDay(0, std::numeric_limits<int64_t>::min());
  setDay(1, std::numeric_limits<int64_t>::max());
  CollectionRules rules;
  rules.maxIdleDays = 10;
  EXPECT_EQ(numbersOf(collect(rules)), std::vector<int>{0});
  EXPECT_EQ(dayOf(1), now);
}

TEST_F(CollectionTest, AStoreThatCannotBeWrittenForgetsUsesQuietly) {
  fill(1);
  setDay(0, 100);
  std::string warning;
  expectKernel(*openStore(path, warning, true), 0);
  EXPECT_EQ(warning, "");
  EXPECT_EQ(dayOf(0), "100");
}

TEST_F(CollectionTest, KernelsThatNoChoiceNamesGo) {
  fill(2, true);
  ASSERT_TRUE(openStore()->put(makeKernel(7), nullptr).isOk());
  const CollectionReport report = collect({});
  EXPECT_EQ(numbersOf(report), std::vector<int>{7});
  EXPECT_EQ(report.choices, 0);
  EXPECT_EQ(report.removed[0].reason, "no choice names it");
  std::unique_ptr<KernelStore> store = openStore();
  expectKernel(*store, 0);
  expectKernel(*store, 1);
  EXPECT_FALSE(holdsKernel(*store, 7));
}

TEST_F(CollectionTest, OldOnesGoAndTunedOnesStay) {
  fill(4);
  fill(2, true); // 0 and 1
  for (int i = 0; i < 4; ++i)
    setDay(i, today() - 10 * i);
  CollectionRules rules;
  rules.maxIdleDays = 5;
  EXPECT_EQ(numbersOf(wouldCollect(rules)), (std::vector<int>{3, 2}));
  EXPECT_EQ(sql("SELECT count(*) FROM kernels"), "4") << "it was only asked";
  EXPECT_EQ(numbersOf(collect(rules)), (std::vector<int>{3, 2}));
  EXPECT_EQ(sql("SELECT count(*) FROM choices"), "2");
  EXPECT_EQ(sql("SELECT count(*) FROM uses"), "2");
  rules.tuned = true;
  EXPECT_EQ(numbersOf(collect(rules)), std::vector<int>{1});
  EXPECT_EQ(sql("SELECT count(*) FROM evidence"), "2");
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

TEST_F(CollectionTest, TheLeastRecentlyUsedMakeRoom) {
  fill(20);
  for (int i = 0; i < 20; ++i)
    setDay(i, today() - (i * 7) % 20);
  const auto whole = static_cast<int64_t>(std::filesystem::file_size(path));
  CollectionRules rules;
  rules.maxBytes = whole / 2;
  const CollectionReport tried = wouldCollect(rules);
  const CollectionReport report = collect(rules);
  EXPECT_EQ(numbersOf(report), numbersOf(tried));
  EXPECT_EQ(report.bytesAfter, tried.bytesAfter);
  EXPECT_LE(report.bytesAfter, rules.maxBytes);
  EXPECT_GT(report.bytesAfter, rules.maxBytes / 2) << "more than needed was removed";
  const std::vector<int> removed = numbersOf(report);
  ASSERT_FALSE(removed.empty());
  for (size_t i = 1; i < removed.size(); ++i)
    EXPECT_GT((removed[i - 1] * 7) % 20, (removed[i] * 7) % 20) << "not the oldest first";
  EXPECT_LE(std::filesystem::file_size(path), static_cast<size_t>(rules.maxBytes)) << "the file is compacted";
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

TEST_F(CollectionTest, ALimitThatTunedKernelsExceedLeavesThem) {
  fill(10, true);
  CollectionRules rules;
  rules.maxBytes = 4096;
  EXPECT_TRUE(collect(rules).removed.empty());
  rules.tuned = true;
  EXPECT_EQ(collect(rules).removed.size(), 10u);
}

// Nothing of them can be measured, so no choice that names them is ever tuned.
TEST_F(CollectionTest, KernelsWithoutChoicesStayAsTunedOnesDo) {
  fill(2);
  int number = 10;
  {
    std::unique_ptr<KernelStore> store = openStore();
    for (const char *op : {"sequences", "cache_sequences", "ascend"}) {
      for (const bool isNamed : {true, false}) {
        StoredKernel kernel = makeKernel(number);
        StoredChoice choice = makeChoice(number++, false);
        const std::string word = "operator window";
        kernel.manifest.replace(kernel.manifest.find(word), word.size(), std::string("operator ") + op);
        choice.problem.replace(0, choice.problem.find(' '), op);
        ASSERT_TRUE(store->put(kernel, isNamed ? &choice : nullptr).isOk());
      }
    }
  }
  CollectionRules rules;
  rules.maxBytes = 1;
  rules.unnamed = false;
  EXPECT_EQ(numbersOf(collect(rules)).size(), 5u) << "two of window, and three that no choice names";
  for (const int kept : {10, 12, 14})
    EXPECT_TRUE(holdsKernel(*openStore(), kept)) << kept;
  rules.maxIdleDays = 0;
  EXPECT_TRUE(collect(rules).removed.empty());
  rules.tuned = true;
  EXPECT_EQ(collect(rules).removed.size(), 3u);
}

TEST_F(CollectionTest, APutKeepsTheFileWithinItsLimit) {
  constexpr int64_t kLimit = 400 * 1024;
  fill(3, true);
  KernelStore::Options options;
  options.path = path;
  options.maxBytes = kLimit;
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open(options, warning);
  ASSERT_TRUE(store);
  for (int i = 10; i < 90; ++i) {
    const StoredChoice choice = makeChoice(i, false);
    ASSERT_TRUE((*store)->put(makeKernel(i), &choice).isOk());
    ASSERT_TRUE(holdsKernel(**store, i)) << "what was just stored stays";
  }
  EXPECT_GT((*store)->counters().collectedKernels, 0u);
  for (int i = 0; i < 3; ++i)
    expectKernel(**store, i);
  store->reset();
  EXPECT_LT(std::filesystem::file_size(path), static_cast<size_t>(kLimit + 64 * 1024));
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

TEST_F(CollectionTest, AReadOnlyStoreCollectsNothing) {
  fill(1);
  std::string warning;
  EXPECT_FALSE(openStore(path, warning, true)->collect({}));
}

} // namespace
} // namespace nsa
