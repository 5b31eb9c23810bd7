// Conversions between float and 16-bit floats, rounding to nearest even. Each conversion is one PTX instruction.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE float to_float(float value) { return value; }

// A bf16 is the upper half of a float.
NSA_DEVICE float to_float(bf16 value) { return __uint_as_float(static_cast<uint32>(value.bits) << 16); }

NSA_DEVICE float to_float(f16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

NSA_DEVICE void convert(float value, float &result) { result = value; }

NSA_DEVICE void convert(float value, bf16 &result) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value)); }

NSA_DEVICE void convert(float value, f16 &result) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value)); }

// Rounds a float to a named type, as in `to<bf16>(x)`.
template <typename T> NSA_DEVICE T to(float value) {
  T result;
  convert(value, result);
  return result;
}

// Rounds two floats to 16 bits each, in one register; `low` goes into the low half.
NSA_DEVICE uint32 pack_bf16(float low, float high) {
  uint32 result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

NSA_DEVICE uint32 pack_f16(float low, float high) {
  uint32 result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

} // namespace nsa
