// The tensors and scalars of one call of a program of one's own, checked by what the program declares.
// Ownership: a call borrows the tensors and their data.
// Thread-safety: pure functions, which allocate memory only for an error.
#pragma once

#include "runtime/engine/call/tensor.h"
#include "runtime/program/program_interface.h"

#include <span>
#include <string_view>

namespace nsa {

struct NamedTensor {
  std::string_view name;
  Tensor tensor;
};
struct NamedScalar {
  std::string_view name;
  double value = 0; // an i32 has a whole number
};

// Checks names, element types, ranks and extents, and fills `call` with the arguments of the program's kernel. A scalar
// that alone is the extent of a dimension need not be given: the bound tensor says it. The error names the program.
Status prepareProgramCall(const ProgramInterface &interface, std::span<const NamedTensor> tensors,
                          std::span<const NamedScalar> scalars, KernelCall &call);

// As prepareProgramCall, for the interface of the program's reference and the tensors of a call of the program. The
// error says what the reference takes otherwise.
Status prepareReferenceCall(const ProgramInterface &reference, std::span<const NamedTensor> tensors,
                            std::span<const NamedScalar> scalars, KernelCall &call);

// The view that the program's kernel takes of a tensor that was checked.
ViewSlots viewOf(const ProgramTensor &declared, const Tensor &tensor);

} // namespace nsa
