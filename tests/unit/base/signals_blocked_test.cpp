// Which signals a thread receives while its maker blocks them, and its maker afterwards, exceptions included.
#include "runtime/process/signals_blocked.h"

#include <gtest/gtest.h>
#include <thread>

namespace nsa {
namespace {

bool blocks(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(SignalsBlocked, HoldsForAThreadBegunMeanwhileAndEndsForItsMaker) {
  sigset_t own, before;
  sigemptyset(&own);
  sigaddset(&own, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &own, &before);
  bool ofThread = false;
  std::thread thread;
  try {
    SignalsBlocked blocked;
    EXPECT_TRUE(blocks(SIGUSR1));
    thread = std::thread([&] { ofThread = blocks(SIGUSR1) && blocks(SIGTERM); });
    throw 1;
  } catch (int) {
    EXPECT_FALSE(blocks(SIGUSR1));
    EXPECT_TRUE(blocks(SIGUSR2)) << "the maker had blocked it before";
  }
  thread.join();
  EXPECT_TRUE(ofThread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace
} // namespace nsa
