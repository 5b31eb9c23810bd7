// A host that forks while other threads plan and run: the child's engine must work, and must never wait for a lock that
// a thread of the parent held. A child that hangs is killed by its alarm and fails the test.
#include "nsa/nsa.h"
#include "tests/harness/scratch.h"
#include "tests/harness/seed.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace nsa;

namespace {

constexpr unsigned kHangSeconds = 30;
constexpr int32_t kWindows = 64; // bucketed: 1, 2, 4 ... 64 are seven problems

// Runs `body` in a child; its result is the exit code.
int inChild(const std::function<int()> &body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(kHangSeconds);
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// One thread's call of the counting kernel, which raises a number in `out`.
struct Call {
  nsa_spec spec = NSA_INIT(nsa_spec);
  nsa_maxima maxima = NSA_INIT(nsa_maxima);
  alignas(16) uint16_t memory[4][64] = {};
  nsa_tensor tensors[4];
  nsa_binding bindings[4];
  nsa_error error;

  explicit Call(int32_t window) {
    spec.op = NSA_OP_WINDOW;
    spec.query_heads = spec.kv_heads = 1;
    spec.qk_dim = spec.v_dim = 8;
    spec.window = window;
    maxima.max_batch = 1;
    maxima.max_seqlen_q = 1;
    maxima.max_seqlen_k = kWindows;
    const nsa_name names[] = {NSA_Q, NSA_K, NSA_V, NSA_OUT};
    for (size_t i = 0; i < 4; ++i) {
      tensors[i] = NSA_INIT(nsa_tensor);
      tensors[i].data = memory[i];
      tensors[i].dtype = NSA_BF16;
      tensors[i].rank = 4;
      for (int axis = 0; axis < 4; ++axis) {
        tensors[i].shape[axis] = axis == 3 ? 8 : 1;
        tensors[i].strides[axis] = axis == 3 ? 1 : 8;
      }
      bindings[i] = {names[i], &tensors[i]};
    }
  }
  Call(const Call &) = delete;

  nsa_status run(const nsa_plan *plan) { return nsa_run(plan, bindings, 4, nullptr, 0, nullptr, &error); }
  nsa_status planAndRun(nsa_engine *engine) {
    nsa_plan *plan = nullptr;
    nsa_status status = nsa_plan_create_with(engine, &spec, &maxima, nullptr, nullptr, &plan, &error);
    if (status == NSA_OK)
      status = run(plan);
    nsa_plan_destroy(plan);
    return status;
  }
  uint64_t runs() const {
    uint64_t count;
    memcpy(&count, memory[3], sizeof count);
    return count;
  }
};

class Fork : public testing::Test {
protected:
  void SetUp() override {
#ifdef NSA_THREAD_SANITIZER
    GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
    for (int32_t window = 1; window <= kWindows; window *= 2) {
      Spec spec;
      spec.queryHeads = spec.kvHeads = 1;
      spec.qkDim = spec.vDim = 8;
      spec.window = window;
      test::storeKernel(cache, spec, {1, 1, 1, kWindows}, {.grid = "1 ; 1 ; 1"}, test::countingCode());
    }
    engine = open();
    ASSERT_NE(engine, nullptr);
  }
  void TearDown() override { nsa_engine_destroy(engine); }

  nsa_engine *open() {
    const nsa_engine_options options = test::storedKernelOptions("cpu", cache);
    nsa_engine *opened = nullptr;
    nsa_error error;
    EXPECT_EQ(nsa_engine_create(&options, &opened, &error), NSA_OK) << error.message;
    return opened;
  }

  test::Scratch folder;
  std::string cache = folder.file("kernels.db");
  nsa_engine *engine = nullptr;
};

TEST_F(Fork, AChildUsesTheEngineAndThePlansOfItsParent) {
  Call call(8);
  nsa_plan *plan = nullptr;
  ASSERT_EQ(nsa_plan_create_with(engine, &call.spec, &call.maxima, nullptr, nullptr, &plan, &call.error), NSA_OK);
  EXPECT_EQ(inChild([&] {
              if (call.run(plan) != NSA_OK || call.runs() != 1)
                return 1;
              if (call.planAndRun(engine) != NSA_OK || call.runs() != 2)
                return 2;
              nsa_stats stats = NSA_INIT(nsa_stats);
              if (nsa_engine_get_stats(engine, &stats, nullptr) != NSA_OK || stats.plans_from_database != 1)
                return 3; // the child's own engine has looked for itself
              if (!strstr(nsa_plan_describe(plan), "counting"))
                return 4;
              nsa_plan_destroy(plan);
              nsa_engine_destroy(engine);
              return 0;
            }),
            0);
  EXPECT_EQ(call.run(plan), NSA_OK) << "the parent goes on";
  EXPECT_EQ(call.planAndRun(engine), NSA_OK);
  nsa_plan_destroy(plan);
}

TEST_F(Fork, AGrandchildWorksToo) {
  EXPECT_EQ(inChild([&] {
              Call call(4);
              if (call.planAndRun(engine) != NSA_OK)
                return 1;
              return inChild([&] { return call.planAndRun(engine) == NSA_OK && call.runs() == 2 ? 0 : 2; });
            }),
            0);
}

TEST_F(Fork, ManyThreadsOfAChildFindOneEngine) {
  EXPECT_EQ(inChild([&] {
              std::atomic<int> failures = 0;
              {
                std::vector<std::jthread> threads;
                for (int i = 0; i < 8; ++i)
                  threads.emplace_back([&] {
                    Call call(16);
                    for (int round = 0; round < 20; ++round)
                      failures += call.planAndRun(engine) != NSA_OK;
                  });
              }
              nsa_stats stats = NSA_INIT(nsa_stats);
              nsa_engine_get_stats(engine, &stats, nullptr);
              return failures == 0 && stats.plans_from_database + stats.plans_from_memory == 160 ? 0 : 1;
            }),
            0);
}

// Threads of the parent plan from memory and from the file, run, and open engines, so that each fork finds other locks
// taken.
TEST_F(Fork, WhileOtherThreadsPlanAndRun) {
  const int forks = test::repeats("NSA_TEST_FORKS", 20);
  std::atomic<bool> done = false;
  std::atomic<uint64_t> calls = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = thread; !done; ++round) {
        Call call(1 << (round % 7));
        EXPECT_EQ(call.planAndRun(engine), NSA_OK) << call.error.message;
        if (round % 8 == 0) { // a new engine reads the file and loads the kernel
          nsa_engine *another = open();
          EXPECT_EQ(call.planAndRun(another), NSA_OK) << call.error.message;
          nsa_engine_destroy(another);
        }
        ++calls;
      }
    });
  while (calls < 20)
    std::this_thread::yield();
  for (int i = 0; i < forks && !HasFailure(); ++i)
    EXPECT_EQ(inChild([&] {
                Call call(1 << (i % 7));
                for (int round = 1; round <= 3; ++round)
                  if (call.planAndRun(engine) != NSA_OK || call.runs() != static_cast<uint64_t>(round))
                    return round;
                nsa_engine *own = open();
                const nsa_status status = own ? call.planAndRun(own) : NSA_INTERNAL;
                nsa_engine_destroy(own);
                return status == NSA_OK ? 0 : 10 + status;
              }),
              0)
        << "fork " << i;
  done = true;
}

} // namespace
