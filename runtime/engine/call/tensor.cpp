#include "runtime/engine/call/tensor.h"

#include <cassert>
#include <string>

namespace nsa {

Status setRowMajorStrides(std::span<const int64_t> shape, std::span<int64_t> strides) {
  assert(shape.size() == strides.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    if (__builtin_mul_overflow(stride, shape[axis], &stride))
      return Status::invalid("shape", std::to_string(shape[axis]), "the number of elements must fit 63 bits");
  }
  return Status::ok();
}

} // namespace nsa
