// The CPU executor's threads: every program once, at any size, from many threads, after a fork.
#include "runtime/cpu/worker_pool.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <xmmintrin.h>

using namespace nsa::cpu;

namespace {

struct Grid {
  int32_t size[3];
  std::vector<std::atomic<int>> hits;
  std::atomic<int> misaligned{0};
  explicit Grid(int32_t x, int32_t y, int32_t z)
      : size{x, y, z}, hits(static_cast<size_t>(x) * static_cast<size_t>(y) * static_cast<size_t>(z)) {}
};

// slots[0] is the Grid; scratch must be the worker's own and aligned.
void countProgram(const uint64_t *slots, const int32_t id[3], void *scratch) {
  auto &grid = *reinterpret_cast<Grid *>(slots[0]);
  auto index = (static_cast<size_t>(id[2]) * static_cast<size_t>(grid.size[1]) + static_cast<size_t>(id[1])) *
                   static_cast<size_t>(grid.size[0]) +
               static_cast<size_t>(id[0]);
  grid.hits[index].fetch_add(1);
  if (!scratch || reinterpret_cast<uintptr_t>(scratch) % 64 != 0)
    grid.misaligned.fetch_add(1);
  // Would be seen by another user of the same scratch.
  auto *words = static_cast<volatile uint64_t *>(scratch);
  words[0] = index;
  for (int i = 0; i < 50; ++i)
    if (words[0] != index)
      grid.misaligned.fetch_add(1);
}

void runOnce(WorkerPool &pool, int32_t x, int32_t y, int32_t z) {
  Grid grid(x, y, z);
  alignas(64) std::byte scratch[64];
  uint64_t slots[] = {reinterpret_cast<uint64_t>(&grid)};
  pool.run(countProgram, slots, grid.size, scratch);
  for (size_t i = 0; i < grid.hits.size(); ++i)
    ASSERT_EQ(grid.hits[i].load(), 1) << "program " << i << " of " << x << "x" << y << "x" << z;
  EXPECT_EQ(grid.misaligned.load(), 0);
}

TEST(WorkerPool, RunsEachProgramOnce) {
  for (int threads : {1, 2, 7}) {
    WorkerPool pool(threads);
    ASSERT_TRUE(pool.reserveScratch(64).isOk());
    runOnce(pool, 1, 1, 1);
    runOnce(pool, 3, 5, 2);
    runOnce(pool, 1000, 1, 1);
    runOnce(pool, 33, 17, 9);
    runOnce(pool, 0, 4, 4);
  }
}

TEST(WorkerPool, ManyCallersAtOnce) {
  WorkerPool pool(4);
  ASSERT_TRUE(pool.reserveScratch(64).isOk());
  std::vector<std::jthread> callers;
  // More callers than jobs that get help, so that some work alone.
  for (int caller = 0; caller < 24; ++caller)
    callers.emplace_back([&pool, caller] {
      for (int round = 0; round < 40; ++round)
        runOnce(pool, 1 + (caller * 7 + round) % 61, 3, 2);
    });
}

TEST(WorkerPool, ScratchGrowsWhileOthersRun) {
  WorkerPool pool(3);
  ASSERT_TRUE(pool.reserveScratch(64).isOk());
  std::jthread runner([&pool] {
    for (int round = 0; round < 200; ++round)
      runOnce(pool, 64, 2, 1);
  });
  for (size_t bytes = 128; bytes <= 1 << 20; bytes *= 2)
    ASSERT_TRUE(pool.reserveScratch(bytes).isOk());
}

TEST(WorkerPool, AChildGetsItsOwnWorkers) {
#ifdef NSA_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
  WorkerPool pool(3);
  ASSERT_TRUE(pool.reserveScratch(64).isOk());
  runOnce(pool, 100, 1, 1);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    runOnce(pool, 100, 3, 1);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  runOnce(pool, 100, 1, 1);
}

// The host's rounding mode and flush-to-zero are the host's: results must not depend on them, and they must be back
// afterwards.
void recordFloatMode(const uint64_t *slots, const int32_t id[3], void *scratch) {
  if (_MM_GET_ROUNDING_MODE() != _MM_ROUND_NEAREST || _MM_GET_FLUSH_ZERO_MODE() != _MM_FLUSH_ZERO_OFF)
    reinterpret_cast<std::atomic<int> *>(slots[0])->fetch_add(1);
}

TEST(WorkerPool, FloatModeOfTheHostDoesNotReachKernels) {
  unsigned before = _mm_getcsr();
  _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  {
    WorkerPool pool(2); // its workers inherit the mode
    std::atomic<int> wrong{0};
    uint64_t slots[] = {reinterpret_cast<uint64_t>(&wrong)};
    const int32_t grid[3] = {200, 1, 1};
    pool.run(recordFloatMode, slots, grid, nullptr);
    EXPECT_EQ(wrong.load(), 0);
  }
  EXPECT_EQ(_MM_GET_ROUNDING_MODE(), static_cast<unsigned>(_MM_ROUND_UP));
  EXPECT_EQ(_MM_GET_FLUSH_ZERO_MODE(), static_cast<unsigned>(_MM_FLUSH_ZERO_ON));
  _mm_setcsr(before);
}

} // namespace
