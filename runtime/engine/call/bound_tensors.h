// Finds the tensors of a call of an operator by name, and checks them (tensor_checks.h).
// Ownership: a BoundTensors borrows the bindings.
// Thread-safety: a BoundTensors is never changed. The checks of a BoundTensors allocate memory only for an error.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/status.h"
#include "runtime/engine/call/tensor_checks.h"

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

  Status check(TensorName name, DType dtype, int rank) const {
    return checkTensor(tensorName(name), (*this)[name], dtype, rank);
  }
  Status checkGradient(TensorName name, DType io, int rank) const {
    return nsa::checkGradient(tensorName(name), (*this)[name], io, rank);
  }
  // Checks one extent. `source` names the tensor or field that the expected extent comes from, and `sourceName` says
  // what the extent is called in that tensor. The error contains both names.
  Status checkExtent(TensorName name, int axis, int64_t expected, std::string_view source,
                     std::string_view sourceName = "") const;
  Status checkContiguous(TensorName name, int lastAxis) const {
    return nsa::checkContiguous(tensorName(name), (*this)[name], lastAxis);
  }
  Status checkDisjoint(TensorName name) const { return nsa::checkDisjoint(tensorName(name), (*this)[name]); }

  static Status broken(TensorName name, const char *aspect, std::string value, std::string rule, std::string hint = "");

private:
  const Bindings &bindings;
};

} // namespace nsa
