// Values about which the optimizer knows nothing. Opaque values prevent optimizations that would cost more than they
// save.
#pragma once

#include "types.cuh"

namespace nsa {

// Returns `value`. The compiler computes the result of opaque() at the place of the call in the code, neither earlier
// nor a second time.
NSA_DEVICE int32 opaque(int32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

// Returns 0.0f in a way that the optimizer cannot know the value.
NSA_DEVICE float opaque_zero() {
  float result;
  asm volatile("mov.f32 %0, 0f00000000;" : "=f"(result));
  return result;
}

} // namespace nsa
