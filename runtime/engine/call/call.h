// Checks the tensors that the caller bound for one call by every rule of docs/specification.md 2, and converts them to
// the values of the kernels' arguments.
// Ownership: a call borrows the tensors and their data.
// Thread-safety: the structs are values. Checking a call allocates memory only for an error.
#pragma once

#include "runtime/base/kernel_arguments.h"
#include "runtime/base/status.h"
#include "runtime/engine/call/tensor.h"

#include <array>
#include <cstdint>

namespace nsa {

// The data that all calls of one plan share: the spec and the maxima that every call must obey, and the scalar kernel
// arguments that do not depend on tensors. The CallRules of a plan are computed once, when the plan is made.
struct CallRules {
  CallRules() = default;
  CallRules(const Spec &spec, const Maxima &maxima);

  Spec spec;
  Maxima maxima;
  ScalarSlots scalars = {}; // 0 for scalars that depend on tensors
};

// The tensors, scalars and sizes of one call that prepareCall has checked, as kernels receive them.
struct Call {
  // The tensors, indexed by TensorName. If the caller bound the tensor K and did not bind the tensor K_WIN, the element
  // of `tensors` for K_WIN is the tensor K.
  SparseViews<kTensorNames> tensors;
  ScalarSlots scalars = {}; // as in CallRules, and complete
  GridSizes sizes;
  int64_t timeQ = 0;  // queries of one sequence in the dense layout, of all sequences in the packed one
  bool empty = false; // nothing to compute
  int64_t pages = 0;  // of each pool of decode; 0: no pages

  const ViewSlots &operator[](TensorName name) const { return tensors[static_cast<size_t>(name)]; }
  void set(TensorName name, const Tensor &t, const std::array<int64_t, kMaxCoordinates> &strides, int64_t rows = 0) {
    ViewSlots &slots = tensors[static_cast<size_t>(name)];
    slots = ViewSlots::make(t.data, t.dtype, strides, rows);
    slots.flags |= t.accumulate ? kViewAdds : 0;
  }
};

// Checks that all tensors are bound, that their dtype, rank, shape, strides and pointers keep the rules, and that no
// size exceeds the plan's maxima. Then fills `call`.
Status prepareCall(const CallRules &rules, const Bindings &bindings, Call &call);

} // namespace nsa
