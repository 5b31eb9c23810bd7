// A tensor in host memory: type, shape and its own contiguous bytes.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nsa::tools {

int64_t elementsOf(const std::vector<int64_t> &shape);

// The byte whose repetition is NaN in every floating point type of tensors.
inline constexpr std::byte kNanByte{0xff};

struct HostTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  static HostTensor make(DType dtype, std::vector<int64_t> shape, std::byte fill = {});
  int64_t elements() const { return elementsOf(shape); }
  // The elements of a tensor of int32.
  std::span<int32_t> integers() { return {reinterpret_cast<int32_t *>(bytes.data()), bytes.size() / 4}; }
  std::span<const int32_t> integers() const {
    return {reinterpret_cast<const int32_t *>(bytes.data()), bytes.size() / 4};
  }
};

std::string shapeText(const std::vector<int64_t> &shape); // "[2048, 8, 64]"

} // namespace nsa::tools
