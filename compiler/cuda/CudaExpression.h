// C++ expressions with their binding strength, and the translation of scalar arith and math operations into C++
// expressions. Thread-safety: pure values and functions.
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

// Returns the name of a type in emitted code, such as "int32", "float" or "bf16". Returns an empty string for a type
// that emitted code cannot use.
llvm::StringRef cudaType(mlir::Type type);

// Returns the C++ expression of a constant, or std::nullopt if the constant cannot be written as a C++ expression.
std::optional<CudaExpression> cudaConstant(mlir::Attribute value);

// Returns the expression `a symbol b`, with brackets around the operands that need brackets.
CudaExpression cudaBinary(const CudaExpression &a, llvm::StringRef symbol, const CudaExpression &b,
                          Precedence precedence);

// `condition ? yes : no`.
CudaExpression cudaSelect(const CudaExpression &condition, const CudaExpression &yes, const CudaExpression &no);

// Returns the C++ expression for an operation of arith or math, applied to one element of each operand. For an
// operation without a C++ expression, the result is std::nullopt.
std::optional<CudaExpression> cudaExpression(mlir::Operation *op, llvm::ArrayRef<CudaExpression> operands);

} // namespace nsa::cuda
