// The thread that renews a lease, when not even the text of its error fits into memory.
#include "cache/lease.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/counted_calls.h"

#include <csignal>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace nsa;
using namespace std::chrono_literals;

namespace {

TEST(LeaseHeart, OutOfMemoryItGoesOnAndTheHostToo) {
#if !NSA_COUNTS_CALLS
  GTEST_SKIP() << "memory cannot be refused under a sanitizer";
#endif
  test::Scratch folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    std::string warning;
    Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = folder.file("kernels.db")}, warning);
    if (!store)
      _exit(1);
    KeyLease lease(**store, {"window | seqlen_k=64", "cpu", "tune"}, {.lease = 300ms, .renewal = 20ms});
    if (lease.take() != KeyLease::State::kMine)
      _exit(2);
    // No file may grow, and so nothing can be renewed; the error that says so takes memory.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &none) != 0)
      _exit(3);
    test::leastRefused = 24;
    std::this_thread::sleep_for(200ms);
    test::leastRefused = SIZE_MAX;
    if ((*store)->swapLease({"window | seqlen_k=64", "cpu", "default"}, std::nullopt, LeaseRow{}))
      _exit(4); // it could be written all the time
    lease.release();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
