// Tensors as callers bind them: by name and with any strides.
// Ownership: a Tensor borrows its data.
// Thread-safety: values.
#pragma once

#include "runtime/base/signature.h"

#include <array>
#include <cstdint>
#include <memory>

namespace nsa {

inline constexpr int kMaxTensorRank = 5;

struct Tensor {
  void *data = nullptr;
  DType dtype = DType::kBf16;
  int rank = 0;
  std::array<int64_t, kMaxTensorRank> shape = {};
  std::array<int64_t, kMaxTensorRank> strides = {}; // elements
};

// The tensors that the caller bound, by name. A call binds only a few of the many tensor names, so the Tensor of an
// unbound name is not even initialised.
class Bindings {
public:
  Bindings() {}
  Bindings(const Bindings &other) { *this = other; }
  Bindings &operator=(const Bindings &other) {
    bound = other.bound;
    for (size_t i = 0; i < kTensorNames; ++i)
      if (bound >> i & 1)
        std::construct_at(&tensors[i], other.tensors[i]);
    return *this;
  }

  const Tensor *find(TensorName name) const { return bound & bit(name) ? &tensors[indexOf(name)] : nullptr; }
  // Returns the Tensor that belongs to a name for writing, and marks the name as bound.
  Tensor &operator[](TensorName name) {
    if (!find(name))
      std::construct_at(&tensors[indexOf(name)]);
    bound |= bit(name);
    return tensors[indexOf(name)];
  }
  // Returns the set of bound names, one bit for each.
  uint64_t names() const { return bound; }
  static uint64_t bit(TensorName name) { return uint64_t{1} << indexOf(name); }

private:
  static size_t indexOf(TensorName name) { return static_cast<size_t>(name); }
  static_assert(kTensorNames <= 64);

  uint64_t bound = 0;
  union {
    std::array<Tensor, kTensorNames> tensors;
  };
};

} // namespace nsa
