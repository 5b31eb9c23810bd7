// C++ expressions with their binding strength, and the translation of scalar arith and math operations into them.
// Thread-safety: pure values and functions.
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>

namespace nsa::cuda {

// The binding strength of operators in C++, tightest first.
enum class Precedence {
  kPrimary,
  kUnary,
  kMultiply,
  kAdd,
  kShift,
  kCompare,
  kEqual,
  kBitAnd,
  kBitXor,
  kBitOr,
  kAnd,
  kOr,
  kConditional
};

struct CudaExpression {
  std::string text;
  Precedence precedence = Precedence::kPrimary;
};

// The name of a type in emitted code, such as "int32", "float" or "bf16". Empty if the type has none.
llvm::StringRef cudaType(mlir::Type type);

// The literal of a constant. None if its type has no literals.
std::optional<CudaExpression> cudaConstant(mlir::Attribute value);

// `a symbol b`, with brackets around the operands that need them.
CudaExpression cudaBinary(const CudaExpression &a, llvm::StringRef symbol, const CudaExpression &b,
                          Precedence precedence);

// `condition ? yes : no`.
CudaExpression cudaSelect(const CudaExpression &condition, const CudaExpression &yes, const CudaExpression &no);

// The expression for an operation of arith or math, applied to one element of each operand. None if the operation has
// no translation.
std::optional<CudaExpression> cudaExpression(mlir::Operation *op, llvm::ArrayRef<CudaExpression> operands);

} // namespace nsa::cuda
