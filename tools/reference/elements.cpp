#include "tools/reference/elements.h"

#include "runtime/base/half.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace nsa::reference {

namespace {

template <DType kType> float load(const std::byte *data, int64_t index) {
  using Bits = std::conditional_t<kType == DType::kF32, float, uint16_t>;
  Bits bits;
  std::memcpy(&bits, data + index * int64_t{sizeof bits}, sizeof bits);
  if constexpr (kType == DType::kBf16)
    return bf16ToFloat(bits);
  else if constexpr (kType == DType::kF16)
    return fp16ToFloat(bits);
  else
    return bits;
}

// Calls the function with the type as a constant, so that a loop in it is one over vectors.
template <typename Body> auto withType(DType dtype, const Body &body) {
  switch (dtype) {
  case DType::kF32:
    return body.template operator()<DType::kF32>();
  case DType::kBf16:
    return body.template operator()<DType::kBf16>();
  default:
    assert(dtype == DType::kF16 && "not a floating point type");
    return body.template operator()<DType::kF16>();
  }
}

} // namespace

float loadElement(DType dtype, const std::byte *data, int64_t index) {
  return withType(dtype, [&]<DType kType> { return load<kType>(data, index); });
}

void loadElements(DType dtype, const std::byte *data, int64_t index, std::span<double> values) {
  withType(dtype, [&]<DType kType> {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = load<kType>(data, index + static_cast<int64_t>(i));
  });
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
