// The one target of this program, as libFuzzer calls it.
#include "tests/fuzz/fuzz_target.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  nsa::fuzz::targets().front().run({reinterpret_cast<const char *>(data), size});
  return 0;
}
