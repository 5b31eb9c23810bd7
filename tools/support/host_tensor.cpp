#include "tools/support/host_tensor.h"

#include <functional>
#include <numeric>

namespace nsa::tools {

int64_t elementsOf(const std::vector<int64_t> &shape) {
  return std::reduce(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

HostTensor HostTensor::make(DType dtype, std::vector<int64_t> shape, std::byte fill) {
  HostTensor tensor{.dtype = dtype, .shape = std::move(shape), .bytes = {}};
  tensor.bytes.resize(static_cast<size_t>(tensor.elements() * dtypeBytes(dtype)), fill);
  return tensor;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace nsa::tools
