/* LLVM's archives and the C++ library's were compiled with a newer glibc than the one that users may have
 * (docs/installing.md says which). This file defines what the older one lacks. Each library and program that users get
 * has these definitions inside, hidden. */
#include <malloc.h>
#include <stdint.h>
#include <sys/random.h>

/* glibc has it since 2.36. The C++ library's random_device calls it. */
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
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
