// Copies the elements of a contiguous host tensor into memory with another arrangement: with unused elements between
// them, or with the dimension of heads outside of the dimension of time. Unused elements have a poison value, which is
// NaN in floating point types.
// Thread-safety: values and pure functions.
#pragma once

#include "tools/support/host_tensor.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nsa::tools {

// The poison value of a floating point type has all bits set, which is NaN in every floating point type of tensors. An
// i32 with all bits set is -1, which marks the unused entries at the end of a block list, so i32 has another poison
// value.
constexpr unsigned char poisonOf(DType dtype) { return dtype == DType::kI32 ? 0x77 : 0xff; }

struct Spacing {
  int64_t base = 0;       // unused elements in front of the first one
  int64_t gap = 0;        // unused elements behind each extent of every dimension but the last
  bool headMajor = false; // for tensors of queries, keys or blocks: heads are outside of time

  bool isContiguous() const { return base == 0 && gap == 0 && !headMajor; }
};

class SpacedLayout {
public:
  // `headAxis` is the dimension of heads, which follows the dimension of time; 0 means that the tensor has no dimension
  // of heads.
  SpacedLayout(DType dtype, std::vector<int64_t> shape, const Spacing &spacing, size_t headAxis);

  const std::vector<int64_t> &strides() const { return steps; } // elements
  int64_t beginBytes() const { return base * dtypeBytes(dtype); }
  int64_t bytes() const { return total * dtypeBytes(dtype); }

  // Returns an image of `bytes()` bytes. Each element of the tensor `contiguous` is at its position in this layout, and
  // all other bytes of the image have the poison value.
  std::vector<std::byte> scatter(const std::vector<std::byte> &contiguous) const;
  // Returns a contiguous tensor with the elements of `image`. `image` is memory in the form that `scatter` returns.
  std::vector<std::byte> gather(const std::vector<std::byte> &image) const;
  // Returns how many bytes of `image` belong to no element and have lost the poison value, so a kernel must have
  // written them.
  int64_t strayBytes(const std::vector<std::byte> &image) const;

private:
  // Calls visit(index in the contiguous tensor, index in the image) for each element.
  template <typename Visit> void forEachElement(Visit visit) const;

  DType dtype;
  std::vector<int64_t> shape, steps;
  int64_t base = 0, total = 0; // elements
};

} // namespace nsa::tools
