// Tensors as callers bind them: by name and with any strides.
// Ownership: a Tensor borrows its data.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/base/sparse_array.h"
#include "runtime/model/tensors.h"

#include <array>
#include <cstdint>

namespace nsa {

inline constexpr int kMaxTensorRank = 5;

struct Tensor {
  void *data = nullptr;
  DType dtype = DType::kBf16;
  int rank = 0;
  std::array<int64_t, kMaxTensorRank> shape = {};
  std::array<int64_t, kMaxTensorRank> strides = {}; // elements
};

// The tensors that the caller bound, by name. A call binds only a few of the many tensor names.
using Bindings = SparseArray<Tensor, kTensorNames, TensorName>;
using TensorNames = IndexSet<kTensorNames, TensorName>;

} // namespace nsa
