#include "runtime/engine/program/host_copy.h"

#include "runtime/base/half.h"
#include "runtime/engine/graph/element_errors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace nsa {

HostCopy::HostCopy(const Tensor &tensor) : source(tensor), width(static_cast<size_t>(dtypeBytes(tensor.dtype))) {
  for (int axis = 0; axis < tensor.rank; ++axis) {
    const int64_t extent = tensor.shape[static_cast<size_t>(axis)];
    // An input may have strides of 0, so extents alone do not bound the product.
    if (__builtin_mul_overflow(count, extent, &count))
      count = std::numeric_limits<int64_t>::max();
    last += std::max<int64_t>(extent - 1, 0) * tensor.strideOf(axis);
  }
}

int64_t HostCopy::spread() const { return std::max(count, last + 1); }

Status HostCopy::download(Device &device, const void *from) {
  data.resize(bytes());
  return data.empty() ? Status::ok() : device.download(data.data(), from, data.size());
}

Status HostCopy::upload(Device &device) const {
  // The elements of the last dimensions lie side by side.
  int64_t run = 1;
  for (int axis = source.rank;
       axis-- > 0 && (source.strideOf(axis) == run || source.shape[static_cast<size_t>(axis)] == 1);)
    run *= source.shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < count; i += run) {
    const size_t at = offset(i) * width;
    NSA_RETURN_IF_ERROR(
        device.upload(static_cast<std::byte *>(source.data) + at, data.data() + at, static_cast<size_t>(run) * width));
  }
  return Status::ok();
}

Status HostCopy::upload(Device &device, void *to) const {
  return data.empty() ? Status::ok() : device.upload(to, data.data(), data.size());
}

size_t HostCopy::offset(int64_t element) const {
  int64_t result = 0;
  for (int axis = source.rank; axis-- > 0;) {
    const int64_t extent = source.shape[static_cast<size_t>(axis)];
    result += element % extent * source.strideOf(axis);
    element /= extent;
  }
  return static_cast<size_t>(result);
}

double HostCopy::load(int64_t element) const {
  return elementAt(data.data(), source.dtype, static_cast<int64_t>(offset(element)));
}

void HostCopy::store(int64_t element, double value) {
  std::byte *at = data.data() + offset(element) * width;
  const auto number = static_cast<float>(value);
  if (width == sizeof(uint16_t)) {
    const uint16_t half = source.dtype == DType::kBf16 ? floatToBf16(number) : floatToFp16(number);
    std::memcpy(at, &half, sizeof half);
    return;
  }
  const uint32_t word = source.dtype == DType::kI32 ? static_cast<uint32_t>(static_cast<int32_t>(value))
                                                    : std::bit_cast<uint32_t>(number);
  std::memcpy(at, &word, sizeof word);
}

} // namespace nsa
