// Many processes on one file, some of them killed in the middle of a write.
#include "tests/cache/store_fixture.h"

#include <csignal>
#include <cstdio>
#include <functional>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

namespace nsa {
namespace {

class ProcessesTest : public StoreTest {
protected:
  // The child exits 0 when `body` holds without a failed expectation.
  static pid_t start(const std::function<void()> &body) {
    std::fflush(nullptr);
    pid_t child = fork();
    if (child != 0)
      return child;
    body();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }

  static void expectGood(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
};

TEST_F(ProcessesTest, RacingToCreatePutAndRead) {
  constexpr int kProcesses = 12, kKernels = 15;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p)
    children.push_back(start([&, p] {
      std::unique_ptr<KernelStore> store = openStore(); // all create the file at once
      std::mt19937 random(static_cast<uint32_t>(p));
      for (int i = 0; i < 3 * kKernels; ++i) {
        int number = static_cast<int>(random() % kKernels);
        StoredChoice choice = makeChoice(number, random() % 2);
        if (random() % 2)
          EXPECT_TRUE(store->put(makeKernel(number), &choice).isOk());
        else if (holdsKernel(*store, number))
          expectKernel(*store, number);
      }
      for (int number = p; number < kKernels; number += kProcesses)
        EXPECT_TRUE(store->put(makeKernel(number), nullptr).isOk());
      EXPECT_EQ(store->counters().damagedRows, 0u);
      EXPECT_EQ(store->counters().failedWrites, 0u);
    }));
  for (pid_t child : children)
    expectGood(child);
  std::unique_ptr<KernelStore> store = openStore();
  for (int number = 0; number < kKernels; ++number)
    expectKernel(*store, number);
  store.reset();
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

TEST_F(ProcessesTest, RacingToReplaceADamagedFile) {
  writeFile(path, damagedDatabase(9000));
  std::vector<pid_t> children;
  for (int p = 0; p < 8; ++p)
    children.push_back(start([&, p] {
      std::string warning;
      std::unique_ptr<KernelStore> store = openStore(path, warning);
      EXPECT_EQ(store->path(), path) << warning;
      EXPECT_TRUE(store->put(makeKernel(p), nullptr).isOk());
    }));
  for (pid_t child : children)
    expectGood(child);
  std::unique_ptr<KernelStore> store = openStore();
  for (int p = 0; p < 8; ++p)
    expectKernel(*store, p);
  EXPECT_EQ(access((path + ".damaged-1").c_str(), F_OK), 0);
  EXPECT_NE(access((path + ".damaged-2").c_str(), F_OK), 0) << "renamed once";
}

TEST_F(ProcessesTest, KilledWriterLeavesAGoodFile) {
  uint32_t seed = std::random_device()();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 20; ++trial) {
    pid_t child = start([&] {
      std::string warning;
      std::unique_ptr<KernelStore> store = openStore(path, warning);
      for (int i = 0;; ++i) {
        StoredChoice choice = makeChoice(i % 50, true);
        (void)store->put(makeKernel(i % 50, 50000), &choice);
      }
    });
    usleep(static_cast<useconds_t>(random() % 60000));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    std::string warning;
    std::unique_ptr<KernelStore> store = openStore(path, warning);
    EXPECT_EQ(warning, "");
    auto choices = store->listChoices();
    ASSERT_TRUE(choices) << choices.status().toString();
    for (const StoredChoice &choice : *choices) {
      EXPECT_EQ(choice.evidence.size(), 2u) << "a choice comes with its evidence";
      EXPECT_TRUE(store->findKernel(choice.content)->has_value()) << "and with its kernel";
    }
    ASSERT_TRUE(store->put(makeKernel(1000 + trial), nullptr).isOk());
    EXPECT_EQ(store->counters().damagedRows, 0u);
    store.reset();
    EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(sql("PRAGMA foreign_key_check"), "");
  }
}

TEST_F(ProcessesTest, ChildOfAForkLeavesTheParentsFileAlone) {
  std::unique_ptr<KernelStore> store = openStore();
  ASSERT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  expectGood(start([&] {
    EXPECT_FALSE(holdsKernel(*store, 1));
    EXPECT_EQ(store->put(makeKernel(2), nullptr).code(), ErrorCode::kUnavailable);
    EXPECT_EQ(store->path(), ":memory:");
    store.reset();
    std::unique_ptr<KernelStore> own = openStore(); // what a child should do
    expectKernel(*own, 1);
    EXPECT_TRUE(own->put(makeKernel(3), nullptr).isOk());
  }));
  expectKernel(*store, 1);
  expectKernel(*store, 3);
  ASSERT_TRUE(store->put(makeKernel(4), nullptr).isOk());
  store.reset();
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

} // namespace
} // namespace nsa
