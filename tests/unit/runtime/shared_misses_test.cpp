// Threads of one engine that miss plans at the same time: the same plan is made once and its result reaches all of
// them, and different plans are made side by side.
#include "tests/harness/wait_until.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <condition_variable>
#include <exception>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace nsa {
namespace {

PlanKey keyOf(int32_t window) {
  Spec spec;
  spec.queryHeads = spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 16;
  spec.window = window;
  return PlanKey::make(spec, {1, 16, 16, 16});
}

// Whether the thread waits for another one.
bool isAsleep(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(')');
  return end != std::string::npos && text.compare(end + 1, 3, " S ") == 0;
}

constexpr Maxima kAsked{1, 16, 16, 16};

// Calls `once` on this thread with `make`, and meanwhile on another thread. Returns what the other thread gets: its own
// `make` is an error.
SharedMisses::Made resultOfAWaiter(SharedMisses &misses, const std::function<SharedMisses::Made()> &make,
                                   const Maxima &waiters = kAsked) {
  SharedMisses::Made result = Status::error(ErrorCode::kInternal, "the waiter has no result");
  std::jthread waiter;
  // The thread sanitizer does not see how libstdc++ counts the holders of an exception, so the exception is held until
  // the waiter has ended.
  std::exception_ptr thrown;
  try {
    (void)misses.once(keyOf(8), kAsked, [&]() -> SharedMisses::Made {
      std::atomic<int> waiting = 0;
      waiter = std::jthread([&] {
        try {
          waiting = gettid();
          result = misses.once(keyOf(8), waiters, [] { return Status::error(ErrorCode::kInternal, "made twice"); });
        } catch (const std::exception &error) {
          result = Status::error(ErrorCode::kInternal, std::string("thrown: ") + error.what());
        }
      });
      EXPECT_TRUE(test::waitUntil([&] { return waiting != 0 && isAsleep(waiting); }));
      return make();
    });
  } catch (const std::exception &) {
    thrown = std::current_exception();
  }
  waiter.join();
  return result;
}

TEST(SharedMisses, AWaiterGetsTheMakersResult) {
  SharedMisses misses;
  const PlanCore core;
  EXPECT_EQ(*resultOfAWaiter(misses, [&] { return &core; }), &core);
  const Status error =
      resultOfAWaiter(misses, [] { return Status::error(ErrorCode::kUnavailable, "no compiler"); }).status();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.error().message, "no compiler");
  const Status thrown =
      resultOfAWaiter(misses, []() -> SharedMisses::Made { throw std::runtime_error("the log is closed"); }).status();
  EXPECT_EQ(thrown.error().message, "thrown: the log is closed");
  EXPECT_EQ(*misses.once(keyOf(8), kAsked, [&] { return &core; }), &core) << "a failure is not kept";
}

// A grid that is too large for the maker's maxima may fit a waiter's smaller ones.
TEST(SharedMisses, AnErrorOfOtherMaximaIsNoAnswer) {
  SharedMisses misses;
  const PlanCore core;
  const Maxima smaller{1, 15, 15, 16};
  EXPECT_EQ(*resultOfAWaiter(misses, [&] { return &core; }, smaller), &core);
  const Status own =
      resultOfAWaiter(misses, [] { return Status::error(ErrorCode::kUnsupported, "the grid"); }, smaller).status();
  EXPECT_EQ(own.error().message, "made twice");
}

using SharedMissesTest = test::PlannerFixture;

// Each thread stays in its compilation until all of them compile. Their number is larger than that of any small set of
// locks that they might share.
TEST_F(SharedMissesTest, DifferentPlansAreMadeSideBySide) {
  constexpr int kThreads = 20;
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  options.log = [&](LogLevel, std::string_view, std::string_view) {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return inside == kThreads; }));
  };
  options.logLimit = -1;
  dumpInto("dump");
  auto engine = open(MissPolicy::kDefault);
  spoilDumps();
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i <= kThreads; ++i)
      threads.emplace_back([&, i] {
        Spec own = spec;
        own.queryHeads = own.kvHeads * i;
        EXPECT_TRUE(engine->plan(own, maxima, nullptr).isOk());
      });
  }
  EXPECT_EQ(engine->counters().kernelsCompiled, uint64_t{kThreads});
}

// The message is the maker's. The command that would help is each caller's own.
TEST_F(SharedMissesTest, EachCallerGetsTheHintOfItsOwnMaxima) {
  auto engine = open(MissPolicy::kFail);
  std::vector<std::jthread> threads;
  for (int64_t keys = 130; keys < 138; ++keys)
    threads.emplace_back([&, keys] {
      Maxima own = maxima;
      own.seqlenK = keys;
      const Status status = engine->plan(spec, own, nullptr).status();
      EXPECT_EQ(status.code(), ErrorCode::kCacheMiss);
      EXPECT_NE(status.error().hint.find("--seqlen-k " + std::to_string(keys) + " "), std::string::npos)
          << status.error().hint;
    });
}

} // namespace
} // namespace nsa
