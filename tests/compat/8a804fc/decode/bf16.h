// bf16 is the upper half of a float.
#pragma once

#include <cstdint>
#include <cstring>

namespace example {

// To the nearest, ties to even. Not for NaN.
inline std::uint16_t toBf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float fromBf16(std::uint16_t value) {
  const std::uint32_t bits = std::uint32_t{value} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

} // namespace example
