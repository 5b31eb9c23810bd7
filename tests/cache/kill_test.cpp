// kill -9 at random moments of the first tuning on a cold cache: real compiles, real puts. After each death the file is
// whole, what was committed is there, and the next run is right.
#include "cache/lease.h"
#include "tests/cache/death_watch.h"
#include "tests/cache/small_job.h"
#include "tests/cache/store_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

namespace nsa {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProblems = 2; // tuned by one run, one after the other
constexpr int kCandidates = 4;

struct Progress {
  test::DeathWatch watch;
  std::atomic<int> tuned{0}; // problems whose plan was returned: each is stored
};

class KillTest : public StoreTest {
protected:
  void tuneAll(Progress &progress) const {
    tools::EngineHandle engine = test::openSmallEngine(path, NSA_MISS_TUNE, templates.path());
    for (int job = 0; job < kProblems; ++job) {
      const Status status = test::runSmallJob(engine.get(), job, 1);
      EXPECT_TRUE(status.isOk()) << status.toString();
      ++progress.tuned;
    }
  }

  // What must hold however the last run ended.
  void expectWholeFile(const Progress &progress) {
    if (!std::filesystem::exists(path)) {
      EXPECT_EQ(progress.watch.committedKernels, 0);
      return;
    }
    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    EXPECT_EQ(warning, "");
    Result<std::vector<StoredChoice>> choices = store->listChoices();
    ASSERT_TRUE(choices) << choices.status().toString();
    EXPECT_GE(choices->size(), static_cast<size_t>(progress.tuned.load())) << "a stored choice was lost";
    for (const StoredChoice &choice : *choices) {
      EXPECT_TRUE(choice.tuned);
      EXPECT_EQ(choice.evidence.size(), static_cast<size_t>(kCandidates)) << "a choice comes with its evidence";
      for (const Measurement &entry : choice.evidence)
        EXPECT_GT(entry.milliseconds, 0) << entry.config << " was not measured";
      EXPECT_TRUE(store->findKernel(choice.content)->has_value()) << "and with its kernel";
    }
    EXPECT_GE(store->listKernels()->size(), static_cast<size_t>(progress.watch.committedKernels.load()))
        << "a committed row was lost";
    EXPECT_EQ(store->counters().damagedRows, 0u);
    store.reset();
    EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(sql("PRAGMA foreign_key_check"), "");
  }

  // The next run compiles nothing that was stored, and waits for no lease of the dead.
  void expectNextRunRight(nsa_miss_policy policy, const Progress &progress) {
    expectGoodEnd(startProcess([&] {
      std::atomic<int> waits = 0;
      tools::EngineHandle engine = test::openSmallEngine(path, policy, templates.path(), &waits);
      for (int job = 0; job < kProblems; ++job) {
        std::string source;
        const Status status = test::runSmallJob(engine.get(), job, std::random_device()(), &source);
        EXPECT_TRUE(status.isOk()) << status.toString();
        if (job < progress.tuned)
          EXPECT_EQ(source, "database");
      }
      EXPECT_EQ(waits, 0) << "the only other process is dead";
    }));
    EXPECT_EQ(sql("SELECT count(*) FROM choices"), std::to_string(kProblems));
    // Who dies after the commit and before the release leaves one row, of which the next run has no need; it expires.
    if (policy == NSA_MISS_TUNE)
      EXPECT_LE(std::stoi(sql("SELECT count(*) FROM leases")), 1);
  }

  void removeFiles() {
    for (const char *ending : {"", "-wal", "-shm"})
      std::filesystem::remove(path + ending);
  }

  const test::FewTemplates templates{NSA_TEMPLATES};
};

TEST_F(KillTest, TheFirstTuningMayDieAtAnyMoment) {
  const int kills = std::max(test::killsInAll() / 5, 1);
  std::mt19937 random(test::freshSeed());

  // A run that lives: how long it takes and how often it writes. The first one warms the page cache.
  std::chrono::microseconds runTime{};
  uint64_t writes = 0;
  for (int i = 0; i < 2; ++i) {
    test::SharedPage<Progress> progress;
    const auto begin = Clock::now();
    expectGoodEnd(startProcess([&] {
      test::DeathWatch::install(progress->watch);
      tuneAll(*progress);
    }));
    runTime = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    writes = progress->watch.writes;
    EXPECT_EQ(progress->tuned, kProblems);
    EXPECT_GE(progress->watch.committedKernels, kProblems);
    EXPECT_EQ(progress->watch.openTransactions, 0);
    expectWholeFile(*progress);
    removeFiles();
  }

  int killed = 0, insideTransaction = 0, afterCommit = 0, late = 0;
  const auto begin = Clock::now();
  while (killed < kills && !HasFailure()) {
    test::SharedPage<Progress> progress;
    // A third of the moments is drawn from the clock, the others from the writes: most of those fall into transactions.
    const bool byWrite = killed % 3 != 0;
    progress->watch.fatalWrite = byWrite ? 1 + random() % writes : 0;
    progress->watch.fatalShare = random() % 257;
    const auto delay = std::chrono::microseconds(random() % static_cast<uint64_t>(runTime.count()));
    SCOPED_TRACE(byWrite ? "killed in write " + std::to_string(progress->watch.fatalWrite)
                         : "killed after " + std::to_string(delay.count()) + " us");
    const pid_t child = startProcess([&] {
      test::DeathWatch::install(progress->watch);
      tuneAll(*progress);
    });
    if (!byWrite) {
      usleep(static_cast<useconds_t>(delay.count()));
      kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      ++killed;
      insideTransaction += progress->watch.openTransactions != 0;
      afterCommit += progress->watch.committedKernels != 0;
    } else { // over before its moment came
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
      ++late;
    }
    expectWholeFile(*progress);
    expectNextRunRight(killed % 10 == 0 ? NSA_MISS_TUNE : NSA_MISS_DEFAULT, *progress);
    removeFiles();
  }
  std::printf(
      "tuning: %d kills, %d (%d %%) inside a write transaction, %d with rows committed before; %d runs ended first; "
      "a run takes %.0f ms and %d writes; %.1f s\n",
      killed, insideTransaction, 100 * insideTransaction / std::max(killed, 1), afterCommit, late,
      static_cast<double>(runTime.count()) / 1000, static_cast<int>(writes),
      std::chrono::duration<double>(Clock::now() - begin).count());
  EXPECT_EQ(killed, kills);
  if (killed >= test::kEnoughKillsToTell)
    EXPECT_GE(insideTransaction * 5, killed) << "at least 20 % are to be inside a transaction";
}

// The third write of a new cache is the first page of its file. sqlite's header has 100 bytes.
TEST_F(KillTest, TheFirstPageMayBeTornAnywhere) {
  constexpr uint64_t kPageBytes = 4096;
  for (const uint64_t share : {1, 3, 5, 6, 7, 128}) {
    SCOPED_TRACE(share);
    test::SharedPage<Progress> progress;
    progress->watch.fatalWrite = 3;
    progress->watch.fatalShare = share;
    const pid_t child = startProcess([&] {
      test::DeathWatch::install(progress->watch);
      tuneAll(*progress);
    });
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    EXPECT_EQ(std::filesystem::file_size(path), kPageBytes * share / 256);
    expectWholeFile(*progress);
    expectNextRunRight(NSA_MISS_DEFAULT, *progress);
    removeFiles();
  }
}

} // namespace
} // namespace nsa
