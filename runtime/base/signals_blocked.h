// A host's signals are for its own threads: a thread begun while this lives receives none, so the host's handlers do
// not run on it. Thread-safety: the mask is that of the thread that makes it, which must be the one that ends it.
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
