// Finds the tensors of a call by name, and checks the rules that are the same for the tensors of all operators: on
// dtype, rank, extents, strides and pointer.
// Ownership: a BoundTensors borrows the bindings.
// Thread-safety: a BoundTensors is never changed. The checks of a BoundTensors allocate memory only for an error.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/status.h"
#include "runtime/engine/call/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace nsa {

class BoundTensors {
public:
  explicit BoundTensors(const Bindings &bindings) : bindings(bindings) {}

  const Tensor *find(TensorName name) const { return bindings.find(name); }
  const TensorNames &names() const { return bindings.indices(); } // of all bound tensors
  // Returns the tensor that is bound to a name, which must be bound.
  const Tensor &operator[](TensorName name) const { return *bindings.find(name); }

  // Checks pointer, dtype, rank and strides, but no extent.
  Status check(TensorName name, DType dtype, int rank) const;
  // Checks one extent. `source` names the tensor or field that the expected extent comes from, and `sourceName` says
  // what the extent is called in that tensor. The error contains both names.
  Status checkExtent(TensorName name, int axis, int64_t expected, std::string_view source,
                     std::string_view sourceName = "") const;
  Status checkContiguous(TensorName name, int lastAxis) const;
  // Checks that no two elements of a tensor share memory. checkDisjoint is for an output tensor whose shape and strides
  // were already checked.
  Status checkDisjoint(TensorName name) const;

  // Returns the error for a tensor that breaks a rule. The error names the tensor and `aspect` as its field: for the
  // tensor "q" and the aspect ".shape", the field is "q.shape".
  static Status broken(TensorName name, const char *aspect, std::string value, std::string rule, std::string hint = "");
  static std::string shapeText(const Tensor &tensor);

private:
  const Bindings &bindings;
};

} // namespace nsa
