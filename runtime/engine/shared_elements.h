// Whether the strides of a tensor put two of its elements into one place.
// Thread-safety: pure function.
#pragma once

#include "runtime/engine/tensor.h"

namespace nsa {

// The strides must not be negative, no extent may be 0, and the offset of the last element must be below 2^61.
// True only if two elements do share a place. The search ends after a fixed number of steps, because it is part of each
// run, and the answer is false then. Only strides without order, of which many interleave, need so many steps.
// Allocates nothing.
bool sharesElements(const Tensor &tensor);

} // namespace nsa
