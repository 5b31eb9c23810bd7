// A copy, in host memory, of a tensor that a caller has bound with any strides: the bytes from its first element to its
// last one.
// Ownership: a HostCopy owns its bytes, and borrows the tensor's data.
// Thread-safety: values.
#pragma once

#include "runtime/device/device.h"
#include "runtime/engine/call/tensor.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nsa {

class HostCopy {
public:
  // Copies nothing yet.
  explicit HostCopy(const Tensor &tensor);

  const Tensor &tensor() const { return source; }
  int64_t elements() const { return count; }
  // The elements of the tensor, or from its first element to its last one if these are more.
  int64_t spread() const;
  // The bytes from the first element to the last one.
  size_t bytes() const { return count == 0 ? 0 : static_cast<size_t>(last + 1) * width; }

  // Copies from the tensor, or from other memory of the device that is laid out as the tensor is.
  Status download(Device &device) { return download(device, source.data); }
  Status download(Device &device, const void *from);
  // Writes the elements of the tensor alone: what lies between them may be written by others meanwhile.
  Status upload(Device &device) const;
  // Writes all bytes to other memory.
  Status upload(Device &device, void *to) const;

  // The value of an element, whose number counts in row-major order.
  double load(int64_t element) const;
  void store(int64_t element, double value);

private:
  size_t offset(int64_t element) const; // in elements

  Tensor source;
  size_t width; // of an element, in bytes
  int64_t count = 1, last = 0;
  std::vector<std::byte> data;
};

} // namespace nsa
