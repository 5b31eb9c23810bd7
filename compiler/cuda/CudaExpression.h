// A C++ expression with its binding strength, and the translation of scalar arith and math operations into one.
// Pure values and functions; nothing is shared.
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>

namespace nsa::cuda {

// Tightest first, as in C++.
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

// "int32", "float", "bf16"; empty for a type that has no counterpart.
llvm::StringRef cudaType(mlir::Type type);

// A literal. None for a type that has none.
std::optional<CudaExpression> cudaConstant(mlir::Attribute value);

// `a symbol b`, with the brackets that it takes.
CudaExpression cudaBinary(const CudaExpression &a, llvm::StringRef symbol, const CudaExpression &b,
                          Precedence precedence);

// `condition ? yes : no`.
CudaExpression cudaSelect(const CudaExpression &condition, const CudaExpression &yes, const CudaExpression &no);

// An elementwise or scalar operation of arith or math on one element of each operand. None if there is no translation.
std::optional<CudaExpression> cudaExpression(mlir::Operation *op, llvm::ArrayRef<CudaExpression> operands);

} // namespace nsa::cuda
