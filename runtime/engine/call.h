// One call's tensors: from what the caller bound to what kernels' arguments are filled with, with every rule
// of docs/specification.md 2 checked on the way.
// Ownership: borrows the tensors and their data. Thread-safety: values; checking allocates only on an error.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/status.h"
#include "runtime/engine/tensor.h"

#include <array>
#include <cstdint>

namespace nsa {

// What a call is checked against, and all of its kernels' numbers that no tensor changes: worked out once, with the
// plan.
struct CallRules {
  CallRules() = default;
  CallRules(const Spec &spec, const Maxima &maxima);

  Spec spec;
  Maxima maxima;
  ScalarSlots scalars = {}; // 0 where the tensors say
};

// Checked, and ready to be handed to kernels.
struct Call {
  // By the operand's own name, whatever was bound in its place: k_win where k stood for it.
  SparseViews<kTensorNames> tensors;
  ScalarSlots scalars = {}; // as in CallRules, complete
  GridSizes sizes;
  int64_t timeQ = 0;  // extent of the time dimension: of one sequence in the dense layout, of all in the packed one
  bool empty = false; // nothing to compute
  int64_t pages = 0;  // of decode's pools; 0: no pages

  const ViewSlots &operator[](TensorName name) const { return tensors[static_cast<size_t>(name)]; }
  void set(TensorName name, const Tensor &t, const std::array<int64_t, kMaxCoordinates> &strides, int64_t rows = 0) {
    tensors[static_cast<size_t>(name)] = ViewSlots::make(t.data, t.dtype, strides, rows);
  }
};

// Checks presence, dtype, rank, shape, maxima, strides and pointers.
Status prepareCall(const CallRules &rules, const Bindings &bindings, Call &call);

} // namespace nsa
