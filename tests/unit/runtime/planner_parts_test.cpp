// Plans of several kernels with the real compiler on the CPU: what is missing is compiled at the same time, once each,
// and gives what one thread gives, errors included.
#include "tests/harness/wait_until.h"
#include "tests/unit/runtime/planner_fixture.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

namespace nsa {
namespace {

class PlanPartsTest : public test::PlannerFixture {
protected:
  PlanPartsTest() {
    spec = Spec();
    maxima = {.batch = 1, .tokensQ = 2048, .seqlenQ = 2048, .seqlenK = 2048};
    spec.op = Operator::kNsa;
    spec.dtype = DType::kF32;
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = spec.vDim = 16;
    options.missPolicy = MissPolicy::kDefault;
  }

  // One cache for each name.
  EnginePointer open(const std::string &cache, int threads) {
    options.cachePath = folder.file(cache);
    options.compileThreads = threads;
    return PlannerFixture::open(*options.missPolicy);
  }
  static std::vector<std::string> contents(const Json &plan) {
    std::vector<std::string> list;
    for (const Json &launch : plan.at("launches"))
      list.push_back(launch.at("content"));
    return list;
  }
  // A function that there is none of, which only the compilation of this template sees.
  void spoil(const std::string &name, const std::string &function) const {
    templates.replace("tile/" + name + ".tile", "return if ", "let spoilt = " + function + "(1)\nreturn if ");
  }
};

TEST_F(PlanPartsTest, ManyThreadsMakeWhatOneMakes) {
  auto one = open("one.db", 1), many = open("many.db", 8);
  const Json alone = describe(*one), together = describe(*many);
  EXPECT_EQ(together["source"], "compiled");
  EXPECT_EQ(contents(together).size(), 6u);
  EXPECT_EQ(contents(together), contents(alone));
  EXPECT_EQ(many->counters().kernelsCompiled, 6u);
  EXPECT_EQ(many->counters().plansCompiled, 1u);

  options.missPolicy = MissPolicy::kFail;
  auto later = open("many.db", 8);
  EXPECT_EQ(describe(*later)["source"], "database");
  EXPECT_EQ(later->counters().kernelsCompiled, 0u);
}

// Both branches are dense attention where a length fits the window.
TEST_F(PlanPartsTest, StepsOfOneKernelCompileItOnce) {
  maxima = {.batch = 1, .tokensQ = 256, .seqlenQ = 256, .seqlenK = 256};
  auto engine = open("kernels.db", 8);
  const std::vector<std::string> list = contents(describe(*engine));
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(list[3], list[4]);
  EXPECT_EQ(engine->counters().kernelsCompiled, 5u);
  EXPECT_EQ(engine->counters().kernelsLoaded, 5u);
}

// Another process makes the first kernel, and is slow: the others are compiled meanwhile.
TEST_F(PlanPartsTest, OthersAreCompiledWhileOneIsWaitedFor) {
  auto engine = open("kernels.db", 2);
  std::string warning;
  auto store = KernelStore::open({.path = options.cachePath}, warning);
  ASSERT_TRUE(store) << store.status().toString();
  const Step first = stepsOf(spec, maxima).front();
  KeyLease lease(**store, {Problem::make(first.spec, first.maxima).key(), engine->device().key(), "default"});
  ASSERT_EQ(lease.take(), KeyLease::State::kMine);
  std::atomic<bool> ended = false;
  std::jthread caller([&] {
    EXPECT_EQ(describe(*engine)["source"], "compiled");
    ended = true;
  });
  EXPECT_TRUE(test::waitUntil([&] { return engine->counters().kernelsCompiled >= 5; }));
  EXPECT_EQ(engine->counters().kernelsCompiled, 5u);
  EXPECT_FALSE(ended);
  lease.release();
  caller.join();
  EXPECT_EQ(engine->counters().kernelsCompiled, 6u);
}

TEST_F(PlanPartsTest, TheFirstStepsErrorIsTheOneThatIsTold) {
  templates.copyFrom(NSA_TEMPLATES);
  options.templateDir = templates.path();
  spoil("combine", "grot"); // the last step
  spoil("select", "grit");  // one in the middle
  // One thread has no race, so it needs no second round.
  for (const auto &[threads, rounds] : {std::pair{1, 1}, {2, 2}, {8, 2}})
    for (int round = 0; round < rounds; ++round) {
      auto engine = open("kernels" + std::to_string(threads) + std::to_string(round) + ".db", threads);
      const std::string error = engine->plan(spec, maxima, nullptr).status().toString();
      EXPECT_NE(error.find("grit"), std::string::npos) << error;
      EXPECT_EQ(engine->counters().plansFailed, 1u);
    }
}

// A host's log throws on one of two threads that compile, the caller's or the other, while the other is at work.
TEST_F(PlanPartsTest, WhatOneThreadThrowsIsTheErrorOnceTheOtherHasEnded) {
  const struct {
    std::function<void()> raise;
    ErrorCode code;
    std::string text;
  } cases[] = {
      {[] { throw std::runtime_error("the log is closed"); }, ErrorCode::kInternal, "the log is closed"},
      {[] { throw std::bad_alloc(); }, ErrorCode::kOutOfMemory, "no host memory to make a kernel"},
      {[] { throw 7; }, ErrorCode::kInternal, "an exception of unknown type"},
  };
  options.logLevel = LogLevel::kInfo;
  for (const auto &[raise, code, text] : cases)
    for (const bool isCallers : {false, true}) {
      SCOPED_TRACE(text + (isCallers ? ", thrown on the caller's thread" : ", thrown on the other thread"));
      std::atomic<bool> throws = true, isOtherIn = false, isThrown = false, hasOtherEnded = false;
      options.log = [&, raise = raise, caller = std::this_thread::get_id()](LogLevel, std::string_view,
                                                                            std::string_view message) {
        waits += isWait(message);
        if (!throws || message.find(options.dumpDir) == std::string_view::npos)
          return;
        if ((std::this_thread::get_id() == caller) == isCallers) {
          EXPECT_TRUE(test::waitUntil([&] { return isOtherIn.load(); }));
          isThrown = true;
          raise();
        }
        isOtherIn = true;
        EXPECT_TRUE(test::waitUntil([&] { return isThrown.load(); }));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        hasOtherEnded = true;
      };
      dumpInto(text + std::to_string(isCallers) + ".dump");
      auto engine = open(text + std::to_string(isCallers) + ".db", 2);
      spoilDumps();
      const Status status = engine->plan(spec, maxima, nullptr).status();
      EXPECT_TRUE(hasOtherEnded) << "it was not waited for";
      EXPECT_EQ(status.code(), code);
      EXPECT_NE(status.toString().find(text), std::string::npos) << status.toString();
      EXPECT_EQ(status.error().hint.find("a callback of the host threw") == 0, code == ErrorCode::kInternal);
      EXPECT_EQ(engine->counters().plansFailed, 1u);
      EXPECT_LT(engine->counters().kernelsCompiled, 6u) << "others were begun";

      // Nothing is left of it: not the kernel's lease, which another would wait for, nor half a plan.
      throws = false;
      EXPECT_EQ(describe(*engine)["source"], "compiled");
      EXPECT_EQ(waits, 0);
      EXPECT_EQ(engine->counters().kernelsCompiled, 7u) << "one of them a second time";
    }
}

TEST_F(PlanPartsTest, AMissThatMayNotBeMadeNamesTheFirstStep) {
  options.missPolicy = MissPolicy::kFail;
  const Step first = stepsOf(spec, maxima).front();
  const Status status = open("kernels.db", 8)->plan(spec, maxima, nullptr).status();
  EXPECT_EQ(status.code(), ErrorCode::kCacheMiss);
  EXPECT_NE(status.toString().find(Problem::make(first.spec, first.maxima).key()), std::string::npos)
      << status.toString();
}

} // namespace
} // namespace nsa
