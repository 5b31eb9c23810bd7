// The coordinates by which kernels address the elements of a tensor.
// Thread-safety: pure function.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/engine/call/tensor.h"

#include <array>
#include <cstdint>

namespace nsa {

// Returns the stride of each coordinate of the view that a kernel gets of a tensor. The tensor is bound to `operand`
// and has the dimensions of the operand's TensorRule. The first coordinates are [entry, time] where time counts; a
// matrix of a block's tokens has [token, element] for its first dimension. A view with a coordinate more than these
// addresses the elements of a contiguous row.
std::array<int64_t, kMaxCoordinates> coordinateStrides(const Spec &spec, const Operand &operand, const Tensor &tensor);

} // namespace nsa
