// Functions whose results the optimizer cannot predict. Opaque values prevent optimizations that would cost more than
// they save.
#pragma once

#include "types.cuh"

namespace nsa {

// Returns `value`. The compiler treats the result of opaque() as unknown, and computes it at the place of the call,
// once per call.
NSA_DEVICE int32 opaque(int32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

// Returns 0.0f, but the optimizer cannot see that the value is zero.
NSA_DEVICE float opaque_zero() {
  float result;
  asm volatile("mov.f32 %0, 0f00000000;" : "=f"(result));
  return result;
}

} // namespace nsa
