// Blocks all signals while a SignalsBlocked exists, so that a thread begun meanwhile receives none: the host's handlers
// must run on the host's own threads only.
// Thread-safety: a SignalsBlocked changes the signal mask of the thread that makes it, and the same thread must destroy
// it.
#pragma once

#include <csignal>
#include <pthread.h>

namespace nsa {

class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  SignalsBlocked(const SignalsBlocked &) = delete;
  SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
  sigset_t before;
};

} // namespace nsa
