// Functions of the GPU's multi-function unit, and minimum and maximum functions that state how they treat NaN.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE float infinity() { return __uint_as_float(0x7f800000u); }
NSA_DEVICE float not_a_number() { return __uint_as_float(0x7fc00000u); }

// Returns 2^x with a relative error below 2^-22 (PTX ISA, ex2.approx); exp2_approx(-inf) = 0.
NSA_DEVICE float exp2_approx(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// log2(x); log2_approx(0) = -inf.
NSA_DEVICE float log2_approx(float x) {
  float result;
  asm("lg2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Returns 1 / x with an error of one unit in the last place (PTX ISA, rcp.approx); reciprocal_approx(0) = inf. A
// subnormal operand or result counts as 0. The operator / takes 20 instructions, and calls a function where an operand
// is 0.
NSA_DEVICE float reciprocal_approx(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// If one operand of max_number is NaN, the result is the other operand: max_number(a, NaN) = a, and max_number(NaN, b)
// = b.
NSA_DEVICE float max_number(float a, float b) {
  float result;
  asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

NSA_DEVICE float min_number(float a, float b) {
  float result;
  asm("min.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

// If one operand of max_or_nan is NaN, the result is NaN.
NSA_DEVICE float max_or_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

NSA_DEVICE float min_or_nan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

} // namespace nsa
