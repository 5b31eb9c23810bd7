// The emulator sees what it is there to see: each fault planted here is an error.
#include "emulator.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace {

using emulator::Launch;

// Returns the error of a launch of two blocks, which are one cluster unless `cluster` says otherwise.
std::string errorOf(const std::function<void()> &kernel, int threads = 32, int cluster = 2) {
  try {
    emulator::run({.grid = {2, 1, 1}, .cluster = cluster, .threads = threads, .sharedBytes = 256, .seed = 1}, kernel);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "";
}

void expectError(const std::function<void()> &kernel, const std::string &part, int threads = 32) {
  const std::string error = errorOf(kernel, threads);
  EXPECT_NE(error.find(part), std::string::npos) << "the error is '" << error << "'";
}

// Block 0 makes an mbarrier that waits for `bytes` bytes, and the cluster meets.
void makeBarrier(int bytes) {
  if (threadIdx.x == 0) {
    emulator::initBarrier(0, 1);
    emulator::arriveExpect(0, bytes);
  }
  emulator::arriveCluster();
  emulator::waitCluster();
}

void pushToFirst(uint32_t value) {
  emulator::push(emulator::clusterAddress(8, 0), &value, 4, emulator::clusterAddress(0, 0));
}

TEST(Emulator, AMessageArrives) {
  uint32_t late = 0;
  EXPECT_EQ(errorOf([&] {
              makeBarrier(blockIdx.x == 0 ? 4 : 8);
              if (blockIdx.x == 1 && threadIdx.x == 0)
                pushToFirst(7);
              if (blockIdx.x == 1)
                return;
              emulator::waitBarrier(0, 0);
              std::memcpy(&late, emulator::sharedMemory() + 8, 4);
            }),
            "");
  EXPECT_EQ(late, 7U);
}

// The thread that waits, the message and the arrival that expects it come in any order.
TEST(Emulator, AMessageMayComeBeforeItIsExpected) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    uint32_t late = 0;
    emulator::run({.grid = {2, 1, 1}, .cluster = 2, .threads = 64, .sharedBytes = 256, .seed = seed}, [&] {
      if (threadIdx.x == 0)
        emulator::initBarrier(0, 1);
      emulator::meetBlock("barrier", 1, 64, false);
      emulator::arriveCluster();
      if (threadIdx.x == 0)
        emulator::arriveExpect(0, blockIdx.x == 0 ? 4 : 0);
      emulator::waitCluster();
      if (blockIdx.x == 1 && threadIdx.x == 0)
        pushToFirst(7);
      if (blockIdx.x == 0 && threadIdx.x == 32) {
        emulator::waitBarrier(0, 0);
        std::memcpy(&late, emulator::sharedMemory() + 8, 4);
      }
    });
    EXPECT_EQ(late, 7U) << "seed " << seed;
  }
}

TEST(Emulator, AMessageThatNothingWaitsFor) {
  expectError(
      [] {
        makeBarrier(8);
        if (blockIdx.x == 1 && threadIdx.x == 0)
          pushToFirst(7);
        emulator::arriveCluster();
        emulator::waitCluster();
      },
      "ends while messages");
}

// A thread that arrives at a barrier does not wait, so that what it stores afterwards may come too late for the others.
TEST(Emulator, WhatFollowsAnArrivalMayComeLate) {
  int missed = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    int stored = 0;
    emulator::run({.grid = {1, 1, 1}, .cluster = 1, .threads = 64, .sharedBytes = 256, .seed = seed}, [&] {
      if (threadIdx.x < 32) {
        emulator::arriveBlock("barrier", 1, 64);
        ++stored;
      } else {
        emulator::meetBlock("barrier", 1, 64, false);
        missed += stored < 32 ? 1 : 0;
      }
    });
  }
  EXPECT_GT(missed, 0);
}

// On an H200 the message never comes, and compute-sanitizer reports an invalid write.
TEST(Emulator, AMessageOfABlockToItselfAlone) {
  const std::string error = errorOf(
      [] {
        makeBarrier(4);
        if (threadIdx.x == 0)
          pushToFirst(7);
      },
      32, 1);
  EXPECT_NE(error.find("a cluster of at least two blocks"), std::string::npos) << "the error is '" << error << "'";
}

TEST(Emulator, AMessageToABlockThatHasEnded) {
  expectError(
      [] {
        makeBarrier(8);
        if (blockIdx.x == 1) {
          emulator::arriveCluster(); // completes when block 0 has ended
          emulator::waitCluster();
          pushToFirst(7);
        }
      },
      "block that has ended");
}

TEST(Emulator, AMessageBeforeTheClusterHasMet) {
  expectError(
      [] {
        if (threadIdx.x == 0)
          emulator::initBarrier(0, 1);
        emulator::arriveCluster();
        if (blockIdx.x == 1)
          pushToFirst(7);
        emulator::waitCluster();
      },
      "before the cluster has met");
}

TEST(Emulator, MoreBytesThanAnMbarrierWaitsFor) {
  expectError(
      [] {
        makeBarrier(4);
        if (blockIdx.x == 1)
          pushToFirst(7);
        emulator::arriveCluster();
        emulator::waitCluster();
      },
      "more bytes than it waits for");
}

TEST(Emulator, AThreadThatWaitsForever) {
  expectError(
      [] {
        makeBarrier(4);
        emulator::waitBarrier(0, 0);
      },
      "64 at an mbarrier");
}

TEST(Emulator, ABarrierThatSomeThreadsSkip) {
  expectError([] { emulator::meetBlock("a named barrier", 1, 64, false); }, "64 at a named barrier");
  const auto skip = [] {
    if (threadIdx.x != 5)
      __syncthreads();
  };
  expectError(skip, "126 at __syncthreads", 64);
}

TEST(Emulator, ThreadsThatMeetAtDifferentBarriers) {
  const auto meet = [] { emulator::meetBlock(threadIdx.x < 32 ? "bar.sync" : "bar.red", 0, 0, false); };
  expectError(meet, "threads of a block meet at different instructions", 64);
}

TEST(Emulator, LanesThatMeetAtDifferentInstructions) {
  expectError([] { emulator::performTogether(threadIdx.x % 2 != 0 ? "mma" : "shfl", nullptr, [](void **) {}); },
              "different instructions");
}

TEST(Emulator, AnAddressBehindSharedMemory) {
  expectError([] { emulator::sharedPointer(248, 16); }, "not in shared memory");
  expectError([] { emulator::sharedOffset(&threadIdx); }, "not in shared memory");
}

TEST(Emulator, ACopyIsThereWhenItIsWaitedFor) {
  alignas(16) const uint32_t source[4] = {1, 2, 3, 4};
  uint32_t early = 0, late[4] = {};
  EXPECT_EQ(errorOf([&] {
              if (threadIdx.x != 0 || blockIdx.x != 0)
                return;
              emulator::beginCopy(16, source, 8);
              emulator::commitCopies();
              std::memcpy(&early, emulator::sharedMemory() + 16, 4);
              emulator::waitCopies(0);
              std::memcpy(late, emulator::sharedMemory() + 16, 16);
            }),
            "");
  EXPECT_EQ(early, 0xffffffffU);
  EXPECT_EQ(late[1], 2U);
  EXPECT_EQ(late[2], 0U); // behind the 8 bytes
}

TEST(Emulator, ABadCopy) {
  alignas(16) const uint32_t source[8] = {};
  expectError([&] { emulator::beginCopy(0, source + 1, 16); }, "from an unaligned address");
  expectError([&] { emulator::beginCopy(8, source, 16); }, "to an unaligned address");
  expectError([&] { emulator::beginCopy(256, source, 16); }, "not in shared memory");
  expectError([&] { emulator::beginCopy(0, source, 17); }, "of a bad size");
}

TEST(Emulator, AThreadThatEndsBeforeItsCopies) {
  alignas(16) const uint32_t source[4] = {};
  expectError([&] { emulator::beginCopy(16, source, 16); }, "copies are under way");
}

// A value that one warp writes and another reads without a barrier depends on the order of threads.
TEST(Emulator, ARaceShows) {
  bool seen[2] = {};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    uint32_t found = 0;
    emulator::run({.threads = 64, .sharedBytes = 128, .seed = seed}, [&] {
      if (threadIdx.x == 0)
        std::memset(emulator::sharedMemory(), 0, 4);
      if (threadIdx.x == 63)
        std::memcpy(&found, emulator::sharedMemory(), 4);
    });
    seen[found == 0] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

} // namespace
