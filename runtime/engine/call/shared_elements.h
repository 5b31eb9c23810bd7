// Finds out whether two elements of a tensor have the same memory address because of its strides.
// Thread-safety: pure function.
#pragma once

#include "runtime/engine/call/tensor.h"

namespace nsa {

// Returns true only if two elements of the tensor have the same memory address. The strides must not be negative, no
// extent may be 0, and the offset of the last element must be below 2^61.
// sharesElements is called in each run, so it allocates nothing, and it gives up and returns false after a fixed number
// of steps. sharesElements can need more steps than this fixed number only for a tensor with several axes whose strides
// interleave.
bool sharesElements(const Tensor &tensor);

} // namespace nsa
