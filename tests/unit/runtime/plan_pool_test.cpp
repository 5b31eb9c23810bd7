// Plans and their pool: memory that serves again, and who ends a closed pool.
#include "runtime/engine/plan_pool.h"

#include "runtime/cpu/cpu_device.h"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace nsa;

namespace {

std::unique_ptr<Device> openDevice() {
  Result<std::unique_ptr<Device>> device = cpu::CpuDevice::open(1, "");
  EXPECT_TRUE(device) << device.status().toString();
  return device ? std::move(*device) : nullptr;
}

Plan *takeFrom(PlanPool &pool) {
  Result<Plan *> plan = pool.take();
  EXPECT_TRUE(plan) << plan.status().toString();
  return plan ? *plan : nullptr;
}

TEST(PlanPool, GivesEachPlanToOneAndEveryPlanAgain) {
  std::unique_ptr<Device> device = openDevice();
  PlanPool pool(*device);
  std::set<Plan *> first, second;
  for (int i = 0; i < 10; ++i)
    first.insert(takeFrom(pool));
  EXPECT_EQ(first.size(), 10u);
  for (Plan *plan : first)
    EXPECT_FALSE(pool.giveBack(plan)) << "the pool is open";
  for (int i = 0; i < 10; ++i)
    second.insert(takeFrom(pool));
  EXPECT_EQ(second, first);
  EXPECT_FALSE(pool.close());
  for (Plan *plan : second)
    EXPECT_EQ(pool.giveBack(plan), plan == *second.rbegin()) << "the last one ends it";
}

TEST(PlanPool, WhatAThreadGaveBackServesTheOthers) {
  std::unique_ptr<Device> device = openDevice();
  PlanPool pool(*device);
  Plan *theirs = nullptr;
  std::jthread([&] {
    theirs = takeFrom(pool);
    pool.giveBack(theirs);
  }).join();
  Plan *own = takeFrom(pool);
  EXPECT_EQ(own, theirs);
  pool.giveBack(own);
  EXPECT_TRUE(pool.close());
}

// The engine's handle is destroyed while many threads give their last plans back: exactly one of them is told to end
// the pool, and no other uses it after that (which the sanitizers see).
TEST(PlanPool, IsEndedOnceHoweverItsLastPlansRaceWithItsEnd) {
  constexpr int kRounds = 300, kThreads = 6;
  std::unique_ptr<Device> device = openDevice();
  for (int round = 0; round < kRounds; ++round) {
    auto *pool = new PlanPool(*device);
    std::atomic<int> ready = 0, ended = 0;
    auto endIf = [&](bool last) {
      if (!last)
        return;
      ++ended;
      delete pool;
    };
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&] {
          Plan *plan = takeFrom(*pool);
          ++ready;
          while (ready <= kThreads) // until the handle's turn has come
            std::this_thread::yield();
          endIf(pool->giveBack(plan));
        });
      while (ready < kThreads)
        std::this_thread::yield();
      ++ready;
      endIf(pool->close());
    }
    ASSERT_EQ(ended, 1) << "round " << round;
  }
}

} // namespace
