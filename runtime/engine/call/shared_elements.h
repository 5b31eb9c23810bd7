// Finds out whether two elements of a tensor have the same memory address because of its strides, and whether two
// tensors lie apart.
// Thread-safety: pure functions.
#pragma once

#include "runtime/engine/call/tensor.h"

namespace nsa {

// Returns true only if two elements of the tensor have the same memory address. The strides must not be negative, no
// extent may be 0, and the offset of the last element must be below 2^61.
// sharesElements is called in each run, so it allocates nothing, and it gives up and returns false after a fixed number
// of steps. sharesElements can need more steps than this fixed number only for a tensor with several axes whose strides
// interleave.
bool sharesElements(const Tensor &tensor);

// Returns true only if no byte belongs to elements of both tensors: one lies behind the other, or they are slices of
// one array, such as d_q, d_k and d_v in an array [tokens, 3, heads, dim]. The function may return false for tensors
// that interleave in another way. The conditions are those of sharesElements.
bool liesApart(const Tensor &a, const Tensor &b);

} // namespace nsa
