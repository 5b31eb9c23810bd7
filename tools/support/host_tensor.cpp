#include "tools/support/host_tensor.h"

namespace nsa::tools {

int64_t HostTensor::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

HostTensor HostTensor::make(DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor{.dtype = dtype, .shape = std::move(shape), .bytes = {}};
  tensor.bytes.resize(tensor.elements() * dtypeBytes(dtype));
  return tensor;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace nsa::tools
