// Blocks the signal SIGXFSZ while an operation writes files. A write beyond the process's limit of file sizes
// (RLIMIT_FSIZE) sends SIGXFSZ, which ends a process that does not handle it. While a FileLimitSignalHeld exists, a
// write beyond the limit of file sizes only fails, with EFBIG. The outermost FileLimitSignalHeld of a thread makes four
// system calls, and the FileLimitSignalHeld objects nested in it make none. An operation with many writes holds one
// outer FileLimitSignalHeld for all its writes.
// Thread-safety: a FileLimitSignalHeld blocks the signal only in the thread that makes it. A thread must destroy its
// FileLimitSignalHeld objects in the reverse order of their construction.
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
    // The operating system sends SIGXFSZ to the thread that wrote, so a SIGXFSZ that became pending while this object
    // existed came from a write of the library and is removed.
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
  bool isHosts = false; // the signal was pending before, so the host must get it
};

} // namespace nsa
