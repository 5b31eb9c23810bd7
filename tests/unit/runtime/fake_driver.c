/* A libcuda.so.1 with one fault, chosen at compile time, for the messages that a host reads:
 * NSA_FAKE_VERSION is what it reports, NSA_FAKE_INIT what cuInit returns, NSA_FAKE_LOOKUP what cuGetProcAddress does.
 */
#include <stddef.h>
#include <stdint.h>

int cuDriverGetVersion(int *version) {
  *version = NSA_FAKE_VERSION;
  return 0;
}

static int init(unsigned flags) {
  (void)flags;
  return NSA_FAKE_INIT;
}

int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status) {
  (void)name, (void)version, (void)flags, (void)status;
  /* Only cuInit is called before the fault shows. */
  *address = (void *)init;
  return NSA_FAKE_LOOKUP;
}
