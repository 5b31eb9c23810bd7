#include "tests/reference/elements.h"

#include "runtime/base/half.h"

#include <cassert>
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

void storeElement(DType dtype, std::byte *data, int64_t index, float value) {
  if (dtype == DType::kF32) {
    std::memcpy(data + index * 4, &value, 4);
    return;
  }
  assert((dtype == DType::kBf16 || dtype == DType::kF16) && "not a floating point type");
  const uint16_t bits = dtype == DType::kBf16 ? floatToBf16(value) : floatToFp16(value);
  std::memcpy(data + index * 2, &bits, 2);
}

} // namespace nsa::reference
