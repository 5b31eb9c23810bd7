// Sixty-four processes (NSA_TEST_PROCESSES for another number) with two threads each, at once on one cold cache, with
// the real compiler: every result is right, what one makes no other makes again, and no lease outlives its expiry.
#include "tests/cache/small_job.h"
#include "tests/cache/store_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>
#include <unistd.h>

#include <sqlite3.h>

namespace nsa {
namespace {

struct Totals {
  std::atomic<int> ready{0};
  std::atomic<int> right{0};
  std::atomic<uint64_t> compiled{0}, fromDatabase{0}, failedWrites{0}, damagedRows{0};

  void add(const nsa_engine *engine) {
    nsa_stats stats = test::statsOf(engine);
    compiled += stats.kernels_compiled;
    fromDatabase += stats.plans_from_database;
    failedWrites += stats.cache_failed_writes;
    damagedRows += stats.cache_damaged_rows;
  }
  // Everybody begins together.
  void awaitAll(int count) {
    ++ready;
    while (ready < count)
      std::this_thread::sleep_for(std::chrono::microseconds(500));
  }

  // What the watcher saw.
  std::atomic<bool> isOver{false};
  std::atomic<int> looks{0}, leases{0};
  std::atomic<int64_t> leastLeftMs{std::numeric_limits<int64_t>::max()}; // of any lease that stood there
};

int processes() { return std::max(test::repeats("NSA_TEST_PROCESSES", 64), 2); }

// Reads the leases again and again, as no process of the race does: how long each was still to last when it was seen.
void watchLeases(const std::string &path, Totals &totals) {
  const auto look = [](void *user, int, char **values, char **) {
    auto &seen = *static_cast<Totals *>(user);
    const int64_t now =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    ++seen.leases;
    seen.leastLeftMs = std::min<int64_t>(seen.leastLeftMs, std::stoll(values[0]) - now);
    return 0;
  };
  while (!totals.isOver) {
    sqlite3 *database = nullptr; // anew each time: it makes no file, and keeps none from being renamed
    if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
      sqlite3_busy_timeout(database, 5000);
      totals.looks += sqlite3_exec(database, "SELECT expires FROM leases", look, &totals, nullptr) == SQLITE_OK;
    }
    sqlite3_close(database);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

class RaceTest : public StoreTest {
protected:
  static constexpr int kThreads = 2;
  static constexpr uint64_t kCandidates = 4; // of the few templates
  const int kProcesses = processes();

  // All threads of all processes; an engine for each process, and in every other process one for each thread.
  void race(nsa_miss_policy policy, const std::string &templateDir, int jobs,
            const std::function<void(nsa_engine *, int thread)> &body) {
    totals->isOver = false;
    const pid_t watcher = startProcess([&] { watchLeases(path, *totals); });
    std::vector<pid_t> children;
    for (int p = 0; p < kProcesses; ++p)
      children.push_back(startProcess([&, p] {
        std::vector<tools::EngineHandle> engines;
        for (int t = 0; t < (p % 2 ? kThreads : 1); ++t)
          engines.push_back(test::openSmallEngine(path, policy, templateDir));
        {
          std::vector<std::jthread> threads;
          for (int t = 0; t < kThreads; ++t)
            threads.emplace_back([&, t] {
              totals->awaitAll(kProcesses * kThreads);
              body(engines[static_cast<size_t>(t) % engines.size()].get(), p * kThreads + t);
            });
        }
        for (const tools::EngineHandle &engine : engines)
          totals->add(engine.get());
      }));
    for (pid_t child : children)
      expectGoodEnd(child);
    totals->isOver = true;
    expectGoodEnd(watcher);
    EXPECT_GT(totals->looks, 0);
    EXPECT_GT(totals->leases, 0) << "the watcher saw no lease";
    EXPECT_GT(totals->leastLeftMs, 0) << "a lease stood there after its expiry";
    EXPECT_EQ(totals->failedWrites, 0u);
    EXPECT_EQ(totals->damagedRows, 0u);
    EXPECT_EQ(sql("SELECT count(*) FROM choices"), std::to_string(jobs));
    EXPECT_EQ(sql("SELECT count(*) FROM leases"), "0");
    EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(sql("PRAGMA foreign_key_check"), "");
  }

  test::SharedPage<Totals> totals;
};

TEST_F(RaceTest, EachKernelIsCompiledOnce) {
  constexpr int kRounds = 2;
  uint64_t compiled = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 1; round <= kRounds; ++round) {
    path = directory + "/" + std::to_string(round) + ".db";
    totals->ready = 0;
    race(NSA_MISS_DEFAULT, "", test::kSmallJobs, [&](nsa_engine *engine, int thread) {
      for (int i = 0; i < test::kSmallJobs; ++i) { // each thread in its own order
        const int job = (thread + i) % test::kSmallJobs;
        const Status status =
            test::runSmallJob(engine, job, static_cast<uint64_t>(thread) * 100 + static_cast<uint64_t>(job));
        EXPECT_TRUE(status.isOk()) << status.toString();
        totals->right += status.isOk();
      }
    });
    EXPECT_EQ(totals->compiled - compiled, static_cast<uint64_t>(test::kSmallJobs));
    compiled = totals->compiled;
    EXPECT_EQ(sql("SELECT count(*) FROM kernels"), std::to_string(test::kSmallJobs));
  }
  EXPECT_EQ(totals->right, kRounds * kProcesses * kThreads * test::kSmallJobs);
  std::printf("%d cold caches, %d processes x %d threads: %d right results, %d kernels compiled %d times; %d leases in "
              "%d looks, each with %.1f s left at least; %.1f s\n",
              kRounds, kProcesses, kThreads, totals->right.load(), kRounds * test::kSmallJobs,
              static_cast<int>(compiled), totals->leases.load(), totals->looks.load(),
              static_cast<double>(totals->leastLeftMs) / 1000,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

TEST_F(RaceTest, EachProblemIsTunedOnce) {
  const test::FewTemplates templates(NSA_TEMPLATES);
  race(NSA_MISS_TUNE, templates.path(), 1, [&](nsa_engine *engine, int thread) {
    const Status status = test::runSmallJob(engine, 0, static_cast<uint64_t>(thread));
    EXPECT_TRUE(status.isOk()) << status.toString();
    totals->right += status.isOk();
  });
  EXPECT_EQ(totals->right, kProcesses * kThreads);
  EXPECT_EQ(totals->compiled, kCandidates);
  EXPECT_EQ(sql("SELECT count(*) FROM evidence"), std::to_string(kCandidates));
}

// Who asks while another one tunes takes that result; who asks later is served later.
TEST_F(RaceTest, WhatIsAskedForAtOnceIsTunedOnce) {
  const test::FewTemplates templates(NSA_TEMPLATES);
  test::SharedPage<std::atomic<int>> sessions;
  race(NSA_MISS_DEFAULT, templates.path(), 1, [&](nsa_engine *engine, int thread) {
    const test::SmallJob job = test::smallJob(0);
    Result<nlohmann::json> report = tools::tune(engine, job.spec, job.maxima);
    ASSERT_TRUE(report) << report.status().toString();
    EXPECT_EQ((*report)["measured"], kCandidates);
    if (!(*report)["tuned_elsewhere"])
      sessions->fetch_add(1);
    const Status status = test::runSmallJob(engine, 0, static_cast<uint64_t>(thread));
    EXPECT_TRUE(status.isOk()) << status.toString();
  });
  EXPECT_EQ(totals->compiled, static_cast<uint64_t>(sessions->load()) * kCandidates);
  EXPECT_LT(sessions->load(), kProcesses) << "of " << kProcesses * kThreads << " who asked at once";
}

} // namespace
} // namespace nsa
