/* A library that is no NVRTC, and says in the environment that its code has run. */
#include <stdlib.h>

__attribute__((constructor)) static void tell(void) { setenv("NSA_TEST_LIBRARY_RAN", "1", 1); }
