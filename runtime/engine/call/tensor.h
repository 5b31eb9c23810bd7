// Tensors as callers bind them: by name and with any strides.
// Ownership: a Tensor borrows its data.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/sparse_array.h"
#include "runtime/base/status.h"
#include "runtime/model/tensors.h"

#include <array>
#include <cstdint>
#include <span>

namespace nsa {

inline constexpr int kMaxTensorRank = 5;

struct Tensor {
  void *data = nullptr;
  DType dtype = DType::kBf16;
  int rank = 0;
  std::array<int64_t, kMaxTensorRank> shape = {};
  std::array<int64_t, kMaxTensorRank> strides = {}; // elements
  bool accumulate = false;                          // a gradient is added to what the tensor holds

  void addAxis(int64_t extent) { shape[static_cast<size_t>(rank++)] = extent; }
  // Returns the stride of an axis in elements, or 0 for an axis with the extent 1. An axis with the extent 1 may have
  // any stride, and a stride that is not a multiple of 16 bytes would make ViewSlots::make mark the view as not
  // aligned.
  int64_t strideOf(int axis) const {
    const auto index = static_cast<size_t>(axis);
    return shape[index] <= 1 ? 0 : strides[index];
  }
};

// Sets the strides of a row-major (contiguous) tensor. The arguments have as many elements as the tensor has
// dimensions. Returns an error if the number of the tensor's elements does not fit 63 bits.
Status setRowMajorStrides(std::span<const int64_t> shape, std::span<int64_t> strides);

// The tensors that the caller bound, by name. A call binds only a few of the many tensor names.
using Bindings = SparseArray<Tensor, kTensorNames, TensorName>;
using TensorNames = IndexSet<kTensorNames, TensorName>;

} // namespace nsa
