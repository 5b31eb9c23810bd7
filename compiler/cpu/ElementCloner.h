// Copies the scalar operations of a template, either as scalar code or as vector code for all lanes. Values of 16-bit
// float types are held as f32. After each operation whose result has a 16-bit float type, the result is rounded to 16
// bits. No operation on a 16-bit float type is passed to LLVM, because LLVM would call compiler-rt for it.
// Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"

#include "mlir/IR/IRMapping.h"

namespace nsa::cpu {

class ElementCloner {
public:
  enum class Shape { kScalar, kVector };

  ElementCloner(CpuBuilder &builder, Shape shape) : b(builder), shape(shape) {}

  // Copies `op`, an arith or math operation, and maps its results to the results of the copy. An operation that cannot
  // be copied is an error with a diagnostic that names the operation.
  mlir::LogicalResult clone(mlir::Operation &op, mlir::IRMapping &mapping);

  // Returns the value that stands for `value` in the copied code. In vector code, `lookup` broadcasts a scalar to all
  // lanes of a vector.
  mlir::Value lookup(mlir::Value value, mlir::IRMapping &mapping);

private:
  mlir::Type convert(mlir::Type type) const;
  mlir::Value roundTo(mlir::Value value, mlir::Type type);
  mlir::Value expand(mlir::Operation &op, mlir::ValueRange operands);

  CpuBuilder &b;
  Shape shape;
};

} // namespace nsa::cpu
