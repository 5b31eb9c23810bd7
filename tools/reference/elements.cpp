#include "tools/reference/elements.h"

#include "runtime/base/half.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace nsa::reference {

float loadElement(DType dtype, const std::byte *data, int64_t index) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, data + index * 4, 4);
    return value;
  }
  assert((dtype == DType::kBf16 || dtype == DType::kF16) && "not a floating point type");
  uint16_t bits;
  std::memcpy(&bits, data + index * 2, 2);
  return dtype == DType::kBf16 ? bf16ToFloat(bits) : fp16ToFloat(bits);
}

namespace {

// The float next to `value` on whose last bit one sees that digits were lost: rounding it to a type with at least two
// bits less gives what rounding `value` itself gives, while rounding a rounded float may not.
float roundToOdd(double value) {
  float result = static_cast<float>(value);
  if (static_cast<double>(result) == value || std::isnan(value))
    return result;
  if (std::fabs(static_cast<double>(result)) > std::fabs(value))
    result = std::nextafter(result, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(result) | 1u);
}

} // namespace

void storeElement(DType dtype, std::byte *data, int64_t index, double value) {
  if (dtype == DType::kF32) {
    const float rounded = static_cast<float>(value);
    std::memcpy(data + index * 4, &rounded, 4);
    return;
  }
  assert((dtype == DType::kBf16 || dtype == DType::kF16) && "not a floating point type");
  const float odd = roundToOdd(value);
  const uint16_t bits = dtype == DType::kBf16 ? floatToBf16(odd) : floatToFp16(odd);
  std::memcpy(data + index * 2, &bits, 2);
}

} // namespace nsa::reference
