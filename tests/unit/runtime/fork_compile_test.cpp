// A fork while another thread is inside the compiler: the child either compiles or is told why it cannot, and never
// waits for a lock of LLVM whose owner it does not have.
#include "runtime/engine/engine_handle.h"
#include "tests/harness/kept_kernels.h"
#include "tests/harness/no_environment.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace nsa;

namespace {

constexpr unsigned kHangSeconds = 120;

Result<std::unique_ptr<EngineHandle>> openEngine() {
  EngineOptions options;
  options.device = "cpu";
  options.cachePath = ":memory:";
  options.compilerPath = NSA_COMPILER_LIBRARY;
  options.log = [](LogLevel, std::string_view, std::string_view) {};
  return EngineHandle::open(std::move(options), test::noVariable);
}

Status planNew(EngineHandle &handle, int32_t dim) {
  Spec spec;
  spec.dtype = DType::kF32;
  spec.queryHeads = spec.kvHeads = 1;
  spec.qkDim = spec.vDim = dim;
  Result<Engine *> engine = handle.engine();
  return engine ? (*engine)->plan(spec, {1, 16, 16, 16}, nullptr).status() : engine.status();
}

TEST(ForkCompile, AChildCompilesOrIsToldWhyNot) {
#ifdef NSA_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
#ifdef NSA_ADDRESS_SANITIZER
  // Seen in a debugger, once in about a thousand forks: the child's free() spins in Quarantine::Drain.
  GTEST_SKIP() << "the address sanitizer's quarantine stays locked in a child whose parent was freeing memory";
#endif
  enum Outcome { kCompiled, kTold, kOther, kOutcomes };
  const test::KeptKernels none("");
  Result<std::unique_ptr<EngineHandle>> handle = openEngine();
  ASSERT_TRUE(handle.isOk()) << handle.status().toString();
  int counts[kOutcomes] = {};
  auto forkOnce = [&] {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(kHangSeconds);
      Status status = planNew(**handle, 8);
      bool told = status.code() == ErrorCode::kUnavailable &&
                  status.toString().find("another thread was compiling") != std::string::npos;
      _exit(status.isOk() ? kCompiled : told ? kTold : kOther);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status) << ": it hung";
    ++counts[std::min<int>(WEXITSTATUS(status), kOther)];
  };

  ASSERT_TRUE(planNew(**handle, 16).isOk());
  forkOnce();
  EXPECT_EQ(counts[kCompiled], 1) << "with the compiler open and at rest, a child compiles";

  std::atomic<bool> done = false;
  std::atomic<int> compiled = 0;
  std::jthread compiling([&] {
    for (int32_t dim = 17; !done; ++dim, ++compiled)
      EXPECT_TRUE(planNew(**handle, dim).isOk());
  });
  while (compiled == 0)
    std::this_thread::yield();
  for (int i = 0; i < 12 && !HasFatalFailure(); ++i)
    forkOnce();
  done = true;
  EXPECT_GT(counts[kTold], 0) << "a thread that only compiles is nearly always inside";
  EXPECT_EQ(counts[kOther], 0);
}

} // namespace
