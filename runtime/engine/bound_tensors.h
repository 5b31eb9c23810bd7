// A call's tensors by name, and the rules that hold for a tensor of any operator: dtype, rank, extents, strides,
// pointer. Ownership: borrows the bindings. Thread-safety: values; checking allocates only on an error.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/status.h"
#include "runtime/engine/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace nsa {

class BoundTensors {
public:
  explicit BoundTensors(const Bindings &bindings) : bindings(bindings) {}

  // nullptr: not bound.
  const Tensor *find(TensorName name) const { return bindings.find(name); }
  uint64_t names() const { return bindings.names(); } // Bindings::bit of each
  // Of one that is bound.
  const Tensor &operator[](TensorName name) const { return *bindings.find(name); }

  // Everything but the extents' values.
  Status check(TensorName name, DType dtype, int rank, bool written) const;
  // `source` (and what it is called there) says where the expected extent comes from.
  Status checkExtent(TensorName name, int axis, int64_t expected, std::string_view source,
                     std::string_view sourceName = "") const;
  Status checkContiguous(TensorName name, int lastAxis) const;

  // Of an extent of 1 any stride is legal, and 0 keeps it out of the alignment flag.
  int64_t stride(TensorName name, int axis) const;

  // `aspect` follows the tensor's name in the field: ".shape".
  static Status broken(TensorName name, const char *aspect, std::string value, std::string rule);
  static std::string shapeText(const Tensor &tensor);

private:
  const Bindings &bindings;
};

} // namespace nsa
