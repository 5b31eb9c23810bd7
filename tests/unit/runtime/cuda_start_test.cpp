// An engine whose context is made by a thread beside it, against a driver that computes nothing: which calls wait for
// it, which get its error, and that no call waits for ever.
#include "nsa/nsa.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/counted_calls.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace nsa;

namespace {

class CudaStart : public testing::Test {
protected:
  ~CudaStart() override {
    fake_gpu_have_context(0);
    fake_gpu_hold_context(0);
    fake_gpu_refuse_context(0);
  }
  nsa_status create() {
    const nsa_engine_options options = test::storedKernelOptions("cuda:0", cache);
    return nsa_engine_create(&options, &engine, &error);
  }
  // No kernel is stored and none may be made: what remains is a cache miss.
  nsa_status plan(void *stream) {
    nsa_spec spec = NSA_INIT(nsa_spec);
    spec.op = NSA_OP_WINDOW;
    spec.query_heads = 4;
    spec.kv_heads = 2;
    spec.qk_dim = spec.v_dim = 8;
    spec.window = 16;
    nsa_maxima maxima = NSA_INIT(nsa_maxima);
    maxima.max_batch = 2;
    maxima.max_seqlen_q = maxima.max_seqlen_k = 32;
    nsa_plan *made = nullptr;
    return nsa_plan_create_with(engine, &spec, &maxima, nullptr, stream, &made, &error);
  }

  test::Scratch folder;
  std::string cache = folder.file("kernels.db");
  nsa_engine *engine = nullptr;
  nsa_error error;
  int streamOfTheHost = 0;
};

TEST_F(CudaStart, OnlyWhoNeedsTheContextWaitsForIt) {
  fake_gpu_hold_context(1);
  ASSERT_EQ(create(), NSA_OK) << error.message;
  EXPECT_EQ(plan(nullptr), NSA_CACHE_MISS) << "looking for a kernel needs no context";
  std::atomic<bool> ended = false;
  std::jthread caller([&] {
    EXPECT_EQ(plan(&streamOfTheHost), NSA_CACHE_MISS) << "asking a stream does";
    ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(ended);
  fake_gpu_hold_context(0);
  caller.join();
  nsa_engine_destroy(engine);
}

TEST_F(CudaStart, WhoNeedsTheContextHasItsError) {
  fake_gpu_hold_context(1);
  fake_gpu_refuse_context(1);
  ASSERT_EQ(create(), NSA_OK) << error.message;
  fake_gpu_hold_context(0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(plan(&streamOfTheHost), NSA_DEVICE_ERROR);
    EXPECT_NE(std::string(error.message).find("devicePrimaryCtxRetain"), std::string::npos) << error.message;
  }
  nsa_engine_destroy(engine);
}

// What the thread throws is an error, and not the host's end.
TEST_F(CudaStart, WhoNeedsTheContextHasWhatItsThreadThrew) {
#if !NSA_COUNTS_CALLS
  GTEST_SKIP() << "memory cannot be refused under a sanitizer";
#endif
  fake_gpu_hold_context(1);
  ASSERT_EQ(create(), NSA_OK) << error.message;
  test::leastRefused = 16384; // less than the list of status words
  fake_gpu_hold_context(0);
  const nsa_status status = plan(&streamOfTheHost);
  test::leastRefused = SIZE_MAX;
  EXPECT_EQ(status, NSA_OUT_OF_MEMORY);
  EXPECT_NE(std::string(error.message).find("no host memory to make a context"), std::string::npos) << error.message;
  nsa_engine_destroy(engine);
}

TEST_F(CudaStart, AContextThatIsThereIsTakenAtOnce) {
  fake_gpu_have_context(1);
  fake_gpu_refuse_context(1);
  EXPECT_EQ(create(), NSA_DEVICE_ERROR);
  EXPECT_NE(std::string(error.message).find("devicePrimaryCtxRetain"), std::string::npos) << error.message;
  fake_gpu_refuse_context(0);
  ASSERT_EQ(create(), NSA_OK) << error.message;
  fake_gpu_capture(1); // of a stream that the host has made there
  EXPECT_EQ(plan(nullptr), NSA_CAPTURING);
  fake_gpu_capture(0);
  nsa_engine_destroy(engine);
}

TEST_F(CudaStart, AnEngineThatGoesWaitsForItsThread) {
  fake_gpu_hold_context(1);
  ASSERT_EQ(create(), NSA_OK) << error.message;
  std::jthread releaser([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    fake_gpu_hold_context(0);
  });
  nsa_engine_destroy(engine);
}

// The child has a copy of the engine, but not of its thread.
TEST_F(CudaStart, AChildWaitsForNoThreadOfItsParent) {
  fake_gpu_hold_context(1);
  ASSERT_EQ(create(), NSA_OK) << error.message;
  for (const bool destroys : {true, false}) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(30);
      if (plan(nullptr) != NSA_UNAVAILABLE || plan(&streamOfTheHost) != NSA_UNAVAILABLE)
        _exit(1);
      if (destroys) { // what the engine holds is its parent's and stays, so no leak checker must look
        nsa_engine_destroy(engine);
        _exit(0);
      }
      [[maybe_unused]] static nsa_engine *volatile kept;
      kept = engine; // a leak checker knows the stack of the parent's threads alone
      exit(0);       // with all that happens at the end of a process
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  fake_gpu_hold_context(0);
  EXPECT_EQ(plan(&streamOfTheHost), NSA_CACHE_MISS) << error.message;
  nsa_engine_destroy(engine);
}

// A process may end while its engine still makes the context.
TEST_F(CudaStart, AProcessMayEndBeforeItsContextIsThere) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    fake_gpu_hold_context(1);
    if (create() != NSA_OK)
      _exit(1);
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      fake_gpu_hold_context(0);
    }).detach();
    exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
