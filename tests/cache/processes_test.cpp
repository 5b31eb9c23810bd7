// Many processes on one file, some of them killed in the middle of a write.
#include "cache/database/tables.h"
#include "tests/cache/store_fixture.h"
#include "tests/harness/seed.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace nsa {
namespace {

using ProcessesTest = StoreTest;

// The byte ranges of the file that this process has locked: " FIRST LAST" of each.
std::string lockedBytesOf(const std::string &file) {
  struct stat status;
  EXPECT_EQ(stat(file.c_str(), &status), 0);
  std::ifstream locks("/proc/locks");
  std::string text;
  for (std::string line; std::getline(locks, line);)
    if (line.find(" " + std::to_string(getpid()) + " ") != std::string::npos)
      if (size_t at = line.find(":" + std::to_string(status.st_ino) + " "); at != std::string::npos)
        text += line.substr(line.find(' ', at));
  return text;
}

TEST_F(ProcessesTest, RacingToCreatePutAndRead) {
  constexpr int kProcesses = 12, kKernels = 15;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p)
    children.push_back(startProcess([&, p] {
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
    expectGoodEnd(child);
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
    children.push_back(startProcess([&, p] {
      std::string warning;
      std::unique_ptr<KernelStore> store = openStore(path, warning);
      EXPECT_EQ(store->path(), path) << warning;
      const Status put = store->put(makeKernel(p), nullptr);
      EXPECT_TRUE(put.isOk()) << put.toString();
    }));
  for (pid_t child : children)
    expectGoodEnd(child);
  std::unique_ptr<KernelStore> store = openStore();
  for (int p = 0; p < 8; ++p)
    expectKernel(*store, p);
  EXPECT_EQ(access((path + ".damaged-1").c_str(), F_OK), 0);
  EXPECT_NE(access((path + ".damaged-2").c_str(), F_OK), 0) << "renamed once";
}

TEST_F(ProcessesTest, KilledWriterLeavesAGoodFile) {
  std::mt19937 random(test::freshSeed());
  for (int trial = 0; trial < 20; ++trial) {
    pid_t child = startProcess([&] {
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

// Every process of the race finds the file of version 1, and one of them changes it.
TEST_F(ProcessesTest, RacingToBringAnOldFileUpToDate) {
  StoredChoice choice = makeChoice(1, true);
  ASSERT_TRUE(openStore()->put(makeKernel(1), &choice).isOk());
  sql("DROP TABLE route_evidence; DROP TABLE routes; DROP TABLE uses; DROP TABLE leases; PRAGMA user_version = 1");
  std::vector<pid_t> children;
  for (int p = 0; p < 8; ++p)
    children.push_back(startProcess([&, p] {
      std::unique_ptr<KernelStore> store = openStore();
      expectKernel(*store, 1);
      EXPECT_TRUE(store->put(makeKernel(2 + p), nullptr).isOk());
    }));
  for (pid_t child : children)
    expectGoodEnd(child);
  EXPECT_EQ(sql("PRAGMA user_version"), std::to_string(kSchemaVersion));
  EXPECT_EQ(sql("SELECT count(*) FROM kernels"), "9");
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

// Both sides of a fork have a connection, and locks, of their own.
TEST_F(ProcessesTest, AStoreSurvivesAForkOnBothSides) {
  std::unique_ptr<KernelStore> store = openStore();
  ASSERT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  expectGoodEnd(startProcess([&] {
    expectKernel(*store, 1);
    EXPECT_TRUE(store->put(makeKernel(2), nullptr).isOk());
    EXPECT_EQ(store->path(), path);
    // sqlite's file format, "WAL-index locking": a process that uses the log holds byte 128 of its index, so that no
    // other takes it for left behind. A connection that shares its parent's state holds nothing.
    EXPECT_NE(lockedBytesOf(path + "-shm").find(" 128 128"), std::string::npos) << lockedBytesOf(path + "-shm");
    store.reset();
  }));
  expectKernel(*store, 1);
  expectKernel(*store, 2);
  ASSERT_TRUE(store->put(makeKernel(3), nullptr).isOk());
  store.reset();
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
}

TEST_F(ProcessesTest, WhatIsKeptInMemorySurvivesAForkToo) {
  path = ":memory:";
  std::unique_ptr<KernelStore> store = openStore();
  ASSERT_TRUE(store->put(makeKernel(1), nullptr).isOk());
  expectGoodEnd(startProcess([&] {
    expectKernel(*store, 1);
    EXPECT_TRUE(store->put(makeKernel(2), nullptr).isOk());
  }));
  expectKernel(*store, 1);
  EXPECT_FALSE(holdsKernel(*store, 2)) << "the child's copy is its own";
}

// A mutex of ours or of sqlite that a thread holds while another one forks would stay locked in the child for ever.
TEST_F(ProcessesTest, ForkWhileOtherThreadsUseTheStore) {
  std::unique_ptr<KernelStore> store = openStore();
  std::atomic<bool> done = false;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; !done; ++i) {
        StoredChoice choice = makeChoice(t, true);
        EXPECT_TRUE(store->put(makeKernel(t), &choice).isOk());
        expectKernel(*store, t);
        if (i % 8 == 0)
          expectKernel(*openStore(), t);
      }
    });
  for (int i = 0; i < 40; ++i)
    expectGoodEnd(startProcess([&] {
      EXPECT_TRUE(store->put(makeKernel(10 + i), nullptr).isOk());
      expectKernel(*store, 10 + i);
      expectKernel(*openStore(), 10 + i);
    }));
  done = true;
  threads.clear();
  for (int i = 0; i < 40; ++i)
    expectKernel(*store, 10 + i);
  store.reset();
  EXPECT_EQ(sql("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(sql("PRAGMA foreign_key_check"), "");
}

} // namespace
} // namespace nsa
