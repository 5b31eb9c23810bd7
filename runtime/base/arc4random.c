/* LLVM's archives and the C++ library's random_device call arc4random, which glibc has since 2.36 only. This one,
 * hidden in each library and program that users get, keeps them loadable with an older glibc (docs/installing.md says
 * which). */
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}
