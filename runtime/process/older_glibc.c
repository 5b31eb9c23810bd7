/* LLVM's archives and the C++ library's were compiled with a newer glibc than the one that users may have
 * (docs/installing.md says which). This file defines what the older one lacks. Each library and program that users get
 * has these definitions inside, hidden. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* glibc has it since 2.36. The C++ library's random_device calls it. It has no way to report a failure, so the process
 * ends where the system gives no random bytes. The system never cuts a request of so few bytes. */
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) < 0)
    if (errno != EINTR)
      abort();
  return value;
}

/* glibc has it since 2.32. It says whether the process has a single thread: the C++ library's shared pointers then
 * count without atomic instructions. 0 is always right and means that there may be more threads. */
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

/* glibc has it since 2.33. LLVM asks for the allocated bytes (uordblks). mallinfo has the same numbers modulo 2^32. */
#if __GLIBC_PREREQ(2, 33)
struct mallinfo2 mallinfo2(void) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
  struct mallinfo2 wide = {.arena = (unsigned)narrow.arena,
                           .ordblks = (unsigned)narrow.ordblks,
                           .smblks = (unsigned)narrow.smblks,
                           .hblks = (unsigned)narrow.hblks,
                           .hblkhd = (unsigned)narrow.hblkhd,
                           .usmblks = (unsigned)narrow.usmblks,
                           .fsmblks = (unsigned)narrow.fsmblks,
                           .uordblks = (unsigned)narrow.uordblks,
                           .fordblks = (unsigned)narrow.fordblks,
                           .keepcost = (unsigned)narrow.keepcost};
  return wide;
}
#endif

/* glibc has it since 2.30. */
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* A deadline of one clock as the other clock will show it. */
struct timespec nsaDeadlineOfOtherClock(struct timespec deadline, struct timespec now, struct timespec otherNow) {
  const int64_t second = 1000000000;
  const int64_t nanoseconds = second + deadline.tv_nsec - now.tv_nsec + otherNow.tv_nsec;
  struct timespec moved = {.tv_sec = otherNow.tv_sec + deadline.tv_sec - now.tv_sec - 1 + nanoseconds / second,
                           .tv_nsec = nanoseconds % second};
  return moved;
}

/* What pthread_cond_clockwait does where glibc has none: it waits on the wall clock. A wall clock that is set meanwhile
 * makes it end earlier or later than the deadline. */
int nsaWaitOnWallClock(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                       const struct timespec *deadline) {
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall = nsaDeadlineOfOtherClock(*deadline, now, wall);
  return pthread_cond_timedwait(condition, mutex, &wall);
}

typedef int (*ClockWait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

/* glibc has it since 2.30. The C++ library's condition variables wait with it for a duration. glibc's function is
 * looked up at the first wait only, because dlsym takes the lock of the loader. */
int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict deadline) {
  static _Atomic(ClockWait) known;
  ClockWait wait = atomic_load_explicit(&known, memory_order_relaxed);
  if (!wait) {
    /* dlsym does not find the definition of this file, which is hidden. */
    *(void **)&wait = dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    if (!wait)
      wait = nsaWaitOnWallClock;
    atomic_store_explicit(&known, wait, memory_order_relaxed);
  }
  return wait(condition, mutex, clock, deadline);
}

/* glibc 2.29 has new versions of these functions, which do not look at a variable that chose between standards of
 * error handling. A linker takes the newest version that it sees, unless an older one is named. */
#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif
#define OLDER_VERSION(function, parameters, arguments)                                                                 \
  __asm__(".symver older_" #function ", " #function "@" OLDEST);                                                       \
  double older_##function parameters;                                                                                  \
  double function parameters { return older_##function arguments; }
OLDER_VERSION(exp, (double x), (x))
OLDER_VERSION(exp2, (double x), (x))
OLDER_VERSION(log, (double x), (x))
OLDER_VERSION(log2, (double x), (x))
OLDER_VERSION(pow, (double x, double y), (x, y))
