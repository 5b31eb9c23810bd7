// Converts bf16 and fp16 to float and back, in integer arithmetic, rounding to nearest even. The conversions give the
// same bits on every processor, whether or not the processor has instructions for bf16 and fp16. A uint16_t holds the
// bits of a bf16 or fp16 value.
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>

namespace nsa {

inline float bf16ToFloat(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

inline uint16_t floatToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  // A NaN whose payload has bits only in the low 16 bits would round to infinity, so it becomes a quiet NaN.
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float fp16ToFloat(uint16_t value) {
  uint32_t sign = static_cast<uint32_t>(value & 0x8000u) << 16;
  uint32_t exponent = (value >> 10) & 0x1fu;
  uint32_t mantissa = value & 0x3ffu;
  if (exponent == 0x1fu) // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  // A subnormal fp16 is mantissa * 2^-24, which is exact in float.
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t floatToFp16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) // NaN: keep the upper payload, make it quiet
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) // from 65520 on the nearest is infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) { // normal in fp16
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
  }
  if (magnitude < 0x33000000u) // below half of the least subnormal
    return static_cast<uint16_t>(sign);
  // The value of a subnormal fp16 is a whole number of units of 2^-24. The mantissa is shifted right to count these
  // units, and the bits that are shifted out decide how the number is rounded.
  uint32_t shift = 126u - (magnitude >> 23);
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  uint32_t kept = mantissa >> shift;
  uint32_t rest = mantissa & ((1u << shift) - 1u);
  uint32_t half = 1u << (shift - 1u);
  if (rest > half || (rest == half && (kept & 1u)))
    ++kept;
  return static_cast<uint16_t>(sign | kept);
}

} // namespace nsa
