// A write beyond the host's limit of file sizes (RLIMIT_FSIZE) sends SIGXFSZ, which ends a process that expects none.
// While this lives such a write only fails, with EFBIG. The outermost one of a thread takes four system calls, and one
// inside of it none, so hold it around a whole operation. Thread-safety: for the thread that makes it, which must be
// the one that ends it, after all that it made meanwhile.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>
#include <pthread.h>

namespace nsa {

class FileLimitSignalHeld {
public:
  FileLimitSignalHeld() : isOutermost(!isHeld) {
    if (!isOutermost)
      return;
    isHeld = true;
    sigset_t pending;
    sigpending(&pending);
    isHosts = sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal, &before);
  }
  ~FileLimitSignalHeld() {
    if (!isOutermost)
      return;
    const int error = errno;
    const timespec atOnce{};
    // What came meanwhile is ours: a write's signal is for the thread that wrote.
    while (!isHosts && sigtimedwait(&signal, nullptr, &atOnce) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    isHeld = false;
    errno = error;
  }
  FileLimitSignalHeld(const FileLimitSignalHeld &) = delete;
  FileLimitSignalHeld &operator=(const FileLimitSignalHeld &) = delete;

private:
  static inline thread_local bool isHeld = false;
  const bool isOutermost;
  sigset_t signal, before;
  bool isHosts = false; // it was pending before
};

} // namespace nsa
