// Values of which the optimizer knows nothing, where what it would make of them costs more.
#pragma once

#include "types.cuh"

namespace nsa {

// The same value, found where this stands, neither before nor again.
NSA_DEVICE int32 opaque(int32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

NSA_DEVICE float opaque_zero() {
  float result;
  asm volatile("mov.f32 %0, 0f00000000;" : "=f"(result));
  return result;
}

} // namespace nsa
