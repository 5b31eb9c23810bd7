/* LLVM's archives call arc4random, which glibc has since 2.36 only. This one, hidden in the library, keeps it
 * loadable with glibc 2.35. LLVM draws names of temporary files from it. */
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}
