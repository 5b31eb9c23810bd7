#include "runtime/engine/graph/element_errors.h"

#include "runtime/base/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace nsa {

double elementAt(const std::byte *data, DType dtype, int64_t index) {
  const auto read = [&]<typename Value>(Value value) {
    memcpy(&value, data + index * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  };
  if (dtype == DType::kF32)
    return read(float());
  if (dtype == DType::kI32)
    return read(int32_t());
  const auto half = read(uint16_t());
  return dtype == DType::kBf16 ? bf16ToFloat(half) : fp16ToFloat(half);
}

void ElementErrors::add(double value, double expected) {
  ++count;
  if (std::isnan(value) || std::isnan(expected)) {
    nanCount += std::isnan(value) != std::isnan(expected);
    return;
  }
  if (std::isinf(value) || std::isinf(expected)) {
    infCount += value != expected;
    return;
  }
  ++finiteCount;
  const double error = std::fabs(value - expected);
  largest = std::max(largest, error);
  sumAbs += error;
  sumSquares += error * error;
  sumReference += expected * expected;
}

double ElementErrors::meanAbs() const { return sumAbs / static_cast<double>(std::max<int64_t>(finiteCount, 1)); }

double ElementErrors::relativeRms() const { return sumSquares == 0 ? 0 : std::sqrt(sumSquares / sumReference); }

} // namespace nsa
