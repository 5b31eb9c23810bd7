// The extents of a tensor's dimensions, and the tensors that apply to a spec (docs/specification.md 2 and 12).
// runtime/model/tensors.h has the types and dimensions themselves.
// Thread-safety: constants.
#pragma once

#include "runtime/base/kernel_arguments.h"

namespace nsa {

// Returns the extent of a tensor's dimension.
int64_t axisExtent(Axis axis, const Spec &spec);

// Some tensors of an operator (operandsOf) may not apply to a spec, such as the weights of another kind of compression
// or the outputs of a branch that is off. Returns whether a tensor applies.
bool takes(const Spec &spec, TensorName name);
// Returns whether the tensor is the gradient of a tensor that no active branch of the spec reads. A call may bind such
// a gradient, and all its rows become 0 (docs/specification.md 9).
bool isZeroGradient(const Spec &spec, TensorName name);

// Returns the operator of the forward pass that writes a tensor which a gradient reads, or nullptr if none does.
const OperatorDef *writerOf(Operator gradient, TensorName name);

} // namespace nsa
