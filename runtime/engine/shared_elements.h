// Whether the strides of a tensor put two of its elements into one place.
// Thread-safety: pure function.
#pragma once

#include "runtime/engine/tensor.h"

namespace nsa {

// Returns true only if two elements of the tensor share a place in memory. The strides must not be negative, no extent
// may be 0, and the offset of the last element must be below 2^61.
// The search ends after a fixed number of steps, because it is part of each run; it returns false then. Only tensors
// with several axes whose steps interleave need so many steps. The search allocates nothing.
bool sharesElements(const Tensor &tensor);

} // namespace nsa
