// kill -9 at random moments of putting, merging and collecting. After each death the file is whole, what was committed
// is there, what was not has left no trace, and the next run is right. (kill_test.cpp does so with tuning.)
#include "tests/cache/death_watch.h"
#include "tests/cache/shared_page.h"
#include "tests/cache/stored_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

namespace nsa {
namespace {

struct Progress {
  test::DeathWatch watch;
  std::atomic<int> done{0}; // steps that have returned
};

class KillFilesTest : public StoredTest {
protected:
  // What `body` does is killed at random writes; `check` looks at the file after each death, and once more after the
  // whole of it was done.
  void killAt(const char *what, const std::function<void(Progress &)> &body,
              const std::function<void(int done, bool exactly)> &check) {
    const int kills = std::max(test::killsInAll() * 4 / 15, 1);
    keep();
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
    // Moments are drawn, so a run may draw few that are inside of a transaction. Then it draws more.
    auto isEnough = [&] { return killed >= kills && (inside * 5 >= kills || killed >= 3 * kills); };
    while (!isEnough() && !HasFailure()) {
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
      expectNothingLost();
      check(progress->done, false);
      // The next run ends what was begun.
      expectGoodEnd(startProcess([&] {
        Progress again;
        body(again);
      }));
      expectNothingLost();
      check(static_cast<int>(steps), true);
      restore();
    }
    std::printf(
        "%s: %d kills, %d (%d %%) inside a write transaction, %d before the first step had ended; a run does %d "
        "writes\n",
        what, killed, inside, 100 * inside / std::max(killed, 1), early, static_cast<int>(writes));
    if (killed < test::kEnoughKillsToTell)
      return;
    EXPECT_GE(inside * 5, kills) << "too few kills are inside a transaction";
    EXPECT_LT(early, killed) << "some are to be behind the first step";
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

// New kernels, and tuned choices in the place of others, each put in a transaction of its own.
TEST_F(KillFilesTest, PuttingMayDieAtAnyMoment) {
  const std::vector<int> numbers = {10, 11, 12, 13, 14, 15};
  steps = numbers.size();
  constexpr int kReplaced = 14; // and up: chosen before, and not tuned
  {
    std::unique_ptr<KernelStore> store = openStore();
    for (const int number : numbers)
      if (number >= kReplaced) {
        const StoredChoice choice = makeChoice(number, false);
        ASSERT_TRUE(store->put(makeKernel(number), &choice).isOk());
      }
  }
  killAt(
      "putting",
      [&](Progress &progress) {
        std::unique_ptr<KernelStore> store = openStore();
        for (const int number : numbers) {
          const StoredChoice choice = makeChoice(number, true);
          const Status status = store->put(makeKernel(number), &choice);
          EXPECT_TRUE(status.isOk()) << status.toString();
          ++progress.done;
        }
      },
      [&](int done, bool exactly) {
        std::unique_ptr<KernelStore> store = openStore();
        for (int i = 0; i < static_cast<int>(steps); ++i) {
          const int number = numbers[static_cast<size_t>(i)];
          const StoredChoice put = makeChoice(number, true), before = makeChoice(number, false);
          const auto found = store->findChoice(put.problem, put.device);
          ASSERT_TRUE(found);
          const bool isPut = found->has_value() && **found == put;
          if (i < done)
            EXPECT_TRUE(isPut) << "a put that had returned was lost: " << number;
          else if (!isPut || i > done || exactly)
            EXPECT_TRUE(number >= kReplaced ? found->has_value() && **found == before : !found->has_value()) << number;
          if (found->has_value()) // a choice comes with its kernel
            expectKernel(*store, number);
          else
            EXPECT_FALSE(holdsKernel(*store, number)) << "and a kernel with its choice";
        }
      });
}

TEST_F(KillFilesTest, MergingMayDieAtAnyMoment) {
  const std::vector<std::vector<int>> sources = {{10, 11, 12, 13}, {14, 15}, {16, 17, 18}};
  steps = sources.size();
  std::vector<std::string> files;
  for (size_t i = 0; i < steps; ++i) {
    files.push_back(scratch.file("source" + std::to_string(i) + ".db"));
    fill(sources[i], files.back());
  }
  killAt(
      "merging",
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
      "collecting",
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
