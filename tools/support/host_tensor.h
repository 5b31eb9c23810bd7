// A tensor in host memory: type, shape and its own contiguous bytes.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nsa::tools {

struct HostTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  int64_t elements() const;
  static HostTensor make(DType dtype, std::vector<int64_t> shape); // zeros
};

std::string shapeText(const std::vector<int64_t> &shape); // "[2048, 8, 64]"

} // namespace nsa::tools
