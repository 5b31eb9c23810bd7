// How the elements of a tensor that the host holds contiguously lie in another memory: with unused elements between
// them, or with the heads outermost. What is unused is poison: NaN in floating point types.
// Thread-safety: values and pure functions.
#pragma once

#include "tools/support/host_tensor.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nsa::tools {

// All bits set is a NaN in all of our floating point types, but -1, which ends a list, in integers.
constexpr unsigned char poisonOf(DType dtype) { return dtype == DType::kI32 ? 0x77 : 0xff; }

struct Spacing {
  int64_t base = 0;       // unused elements in front of the first one
  int64_t gap = 0;        // unused elements behind each extent of each dimension but the last
  bool headMajor = false; // tensors of queries, keys or blocks: heads outside of time

  bool isContiguous() const { return base == 0 && gap == 0 && !headMajor; }
};

class SpacedLayout {
public:
  // `headAxis` is the dimension of heads, behind that of time; 0: there is none.
  SpacedLayout(DType dtype, std::vector<int64_t> shape, const Spacing &spacing, size_t headAxis);

  const std::vector<int64_t> &strides() const { return steps; } // elements
  int64_t beginBytes() const { return base * dtypeBytes(dtype); }
  int64_t bytes() const { return total * dtypeBytes(dtype); }

  // `bytes` of memory: a contiguous tensor's elements in their places, poison between.
  std::vector<std::byte> scatter(const std::vector<std::byte> &contiguous) const;
  // Back from there.
  std::vector<std::byte> gather(const std::vector<std::byte> &image) const;
  // Bytes of the image that belong to no element and are not poison.
  int64_t strayBytes(const std::vector<std::byte> &image) const;

private:
  // Calls visit(index of the element in the contiguous tensor, in the image).
  template <typename Visit> void forEachElement(Visit visit) const;

  DType dtype;
  std::vector<int64_t> shape, steps;
  int64_t base = 0, total = 0; // elements
};

} // namespace nsa::tools
