// The rules that are the same for all tensors of a call: on dtype, rank, extents, strides and pointer. An error names
// the tensor and what of it is wrong.
// Thread-safety: pure functions, which allocate memory only for an error.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace nsa {

// Returns the error for a tensor that breaks a rule. The error names the tensor and `aspect` as its field: for the
// tensor "q" and the aspect ".shape", the field is "q.shape".
Status brokenTensor(std::string_view name, std::string_view aspect, std::string value, std::string rule,
                    std::string hint = "");
std::string shapeText(const Tensor &tensor);

// Checks pointer, dtype, rank and strides, but no extent. Refuses to add to the tensor.
Status checkTensor(std::string_view name, const Tensor &tensor, DType dtype, int rank);
// The same for a gradient that the call writes, whose elements are of the io type or fp32, and which may be added to.
Status checkGradient(std::string_view name, const Tensor &tensor, DType io, int rank);
// Checks one extent. `source` says where the expected extent comes from.
Status checkExtent(std::string_view name, const Tensor &tensor, int axis, int64_t expected, std::string_view source);
Status checkContiguous(std::string_view name, const Tensor &tensor, int lastAxis);
// Checks that no two elements of a tensor share memory. checkDisjoint is for an output tensor whose shape and strides
// were already checked.
Status checkDisjoint(std::string_view name, const Tensor &tensor);
// Checks that a gradient shares no memory with another tensor of the call. Both were already checked.
Status checkApart(std::string_view name, const Tensor &gradient, std::string_view otherName, const Tensor &other);

} // namespace nsa
