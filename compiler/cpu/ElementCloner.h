// Copies the scalar operations of a template, as scalars or once for all lanes of a vector.
// Values of 16 bit float types are carried as f32 and rounded where the template makes them, so that no operation on
// such a type reaches LLVM (which would call compiler-rt for it).
// Thread-safety: none beyond the builder's.
#pragma once

#include "compiler/cpu/CpuBuilder.h"

#include "mlir/IR/IRMapping.h"

namespace nsa::cpu {

class ElementCloner {
public:
  enum class Shape { kScalar, kVector };

  ElementCloner(CpuBuilder &builder, Shape shape) : b(builder), shape(shape) {}

  // Maps the results of `op`, an arith or math operation, to those of its copy. A diagnostic names what has none.
  mlir::LogicalResult clone(mlir::Operation &op, mlir::IRMapping &mapping);

  // The copy of a value; a scalar from outside a vector region becomes a vector.
  mlir::Value lookup(mlir::Value value, mlir::IRMapping &mapping);

private:
  mlir::Type convert(mlir::Type type) const;
  mlir::Value roundTo(mlir::Value value, mlir::Type type);
  mlir::Value expand(mlir::Operation &op, mlir::ValueRange operands);

  CpuBuilder &b;
  Shape shape;
};

} // namespace nsa::cpu
