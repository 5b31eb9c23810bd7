// kill -9 at random moments of merging and of collecting. After each death the file is whole, what was committed is
// there, what was not has left no trace, and the next run is right. (kill_test.cpp does so with tuning.)
#include "tests/cache/death_watch.h"
#include "tests/cache/pack_fixture.h"
#include "tests/cache/shared_page.h"
#include "tests/harness/seed.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

namespace nsa {
namespace {

constexpr int kKills = 50;        // of each test
constexpr int kEnoughToTell = 30; // kills, of where they fell
constexpr int kStored = 4;        // kernels that nothing may touch: 0 to 3

struct Progress {
  test::DeathWatch watch;
  std::atomic<int> done{0}; // steps that have returned
};

class KillFilesTest : public PackTest {
protected:
  // What `body` does is killed at random writes; `check` looks at the file after each death, and once more after the
  // whole of it was done.
  void killAt(const std::function<void(Progress &)> &body, const std::function<void(int done, bool exactly)> &check) {
    const char *wanted = std::getenv("NSA_TEST_KILLS"); // of all kill tests together: tuning takes most of them
    const int kills = wanted ? std::max(static_cast<int>(std::strtol(wanted, nullptr, 10)) / 4, 1) : kKills;
    sql("PRAGMA wal_checkpoint(TRUNCATE)");
    const std::string before = readFile(path);
    const auto restore = [&] {
      for (const char *ending : {"-wal", "-shm"})
        std::filesystem::remove(path + ending);
      writeFile(path, before);
    };
    uint64_t writes = 0;
    {
      test::SharedPage<Progress> progress;
      expectGoodEnd(startProcess([&] {
        test::DeathWatch::install(progress->watch);
        body(*progress);
      }));
      writes = progress->watch.writes;
      check(progress->done, true);
      restore();
    }
    ASSERT_GT(writes, 0u);
    std::mt19937 random(test::freshSeed());
    int killed = 0, inside = 0, early = 0;
    while (killed < kills && !HasFailure()) {
      test::SharedPage<Progress> progress;
      progress->watch.fatalWrite = 1 + random() % writes;
      progress->watch.fatalShare = random() % 257;
      SCOPED_TRACE("killed in write " + std::to_string(progress->watch.fatalWrite) + " of " + std::to_string(writes));
      const pid_t child = startProcess([&] {
        test::DeathWatch::install(progress->watch);
        body(*progress);
      });
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
      ++killed;
      inside += progress->watch.openTransactions != 0;
      early += progress->done == 0;
      expectWhole();
      check(progress->done, false);
      // The next run ends what was begun.
      expectGoodEnd(startProcess([&] {
        Progress again;
        body(again);
      }));
      expectWhole();
      check(static_cast<int>(steps), true);
      restore();
    }
    std::printf("%d kills, %d inside a write transaction, %d before the first step had ended; a run does %d writes\n",
                killed, inside, early, static_cast<int>(writes));
    if (killed < kEnoughToTell)
      return;
    EXPECT_GT(inside * 10, killed) << "at least 10 % are to be inside a transaction";
    EXPECT_LT(early, killed) << "some are to be behind the first step";
  }

  void expectWhole() {
    EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(sql("PRAGMA foreign_key_check"), "");
    std::unique_ptr<KernelStore> store = openStore();
    for (int i = 0; i < kStored; ++i) {
      expectKernel(*store, i);
      const StoredChoice choice = makeChoice(i, true);
      auto found = store->findChoice(choice.problem, choice.device);
      ASSERT_TRUE(found && found->has_value());
      EXPECT_EQ(**found, choice);
    }
  }

  // How many of these kernels the file holds, each of them whole.
  int held(const std::vector<int> &numbers) {
    std::unique_ptr<KernelStore> store = openStore();
    int count = 0;
    for (const int number : numbers)
      if (holdsKernel(*store, number)) {
        expectKernel(*store, number);
        ++count;
      }
    EXPECT_EQ(store->counters().damagedRows, 0u);
    return count;
  }

  size_t steps = 0;
};

TEST_F(KillFilesTest, MergingMayDieAtAnyMoment) {
  fill({0, 1, 2, 3}, path);
  const std::vector<std::vector<int>> sources = {{10, 11, 12, 13}, {14, 15}, {16, 17, 18}};
  steps = sources.size();
  std::vector<std::string> files;
  for (size_t i = 0; i < steps; ++i) {
    files.push_back(scratch.file("source" + std::to_string(i) + ".db"));
    fill(sources[i], files.back());
  }
  killAt(
      [&](Progress &progress) {
        std::unique_ptr<KernelStore> store = openStore();
        for (const std::string &file : files) {
          Result<CacheFile> from = CacheFile::open(file);
          ASSERT_TRUE(from) << from.status().toString();
          const Result<MergeReport> report = store->merge(*from, Prefer::kSource);
          EXPECT_TRUE(report) << report.status().toString();
          ++progress.done;
        }
      },
      [&](int done, bool exactly) {
        for (int i = 0; i < static_cast<int>(steps); ++i) {
          const std::vector<int> &numbers = sources[static_cast<size_t>(i)];
          const int count = held(numbers), all = static_cast<int>(numbers.size());
          if (i < done)
            EXPECT_EQ(count, all) << "a merge that had returned was lost";
          else
            EXPECT_TRUE(count == 0 || (count == all && i == done && !exactly)) << count << " of " << all;
        }
      });
}

TEST_F(KillFilesTest, CollectingMayDieAtAnyMoment) {
  fill({0, 1, 2, 3}, path);
  // Each step removes the kernels of one number of days.
  const std::vector<std::vector<int>> groups = {{10, 11, 12}, {13, 14, 15, 16}, {17, 18}};
  steps = groups.size();
  {
    std::unique_ptr<KernelStore> store = openStore();
    for (const std::vector<int> &group : groups)
      for (const int number : group) {
        const StoredChoice choice = makeChoice(number, false);
        ASSERT_TRUE(store->put(makeKernel(number), &choice).isOk());
      }
  }
  for (size_t i = 0; i < steps; ++i)
    for (const int number : groups[i])
      sql("UPDATE uses SET day = day - " + std::to_string(100 * (steps - i)) + " WHERE content = '" +
          makeKernel(number).content + "'");
  killAt(
      [&](Progress &progress) {
        std::unique_ptr<KernelStore> store = openStore();
        for (size_t i = 0; i < steps; ++i) {
          CollectionRules rules;
          rules.maxIdleDays = static_cast<int64_t>(100 * (steps - i)) - 50;
          const Result<CollectionReport> report = store->collect(rules);
          EXPECT_TRUE(report) << report.status().toString();
          ++progress.done;
        }
      },
      [&](int done, bool exactly) {
        for (int i = 0; i < static_cast<int>(steps); ++i) {
          const std::vector<int> &numbers = groups[static_cast<size_t>(i)];
          std::string contents;
          for (const int number : numbers)
            contents += (contents.empty() ? "'" : ", '") + makeKernel(number).content + "'";
          // Not through a store: its lookups are uses.
          const int count = std::stoi(sql("SELECT count(*) FROM kernels WHERE content IN (" + contents + ")"));
          const int all = static_cast<int>(numbers.size());
          if (i < done)
            EXPECT_EQ(count, 0) << "what was removed is back";
          else
            EXPECT_TRUE(count == all || (count == 0 && i == done && !exactly)) << count << " of " << all;
        }
      });
}

} // namespace
} // namespace nsa
