// The vocabulary that generated CPU code is written in: counted loops, addresses, vectors of the target's width.
// A builder belongs to one lowering. Thread-safety: as the MLIRContext, one thread.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

class CpuBuilder : public mlir::ImplicitLocOpBuilder {
public:
  CpuBuilder(mlir::Location loc, mlir::MLIRContext *context, int64_t lanes)
      : ImplicitLocOpBuilder(loc, context), lanes(lanes) {}

  const int64_t lanes; // 32 bit lanes of a vector

  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({lanes}, element); }
  mlir::Type pointerType() { return mlir::LLVM::LLVMPointerType::get(getContext()); }

  // Constants of a scalar or vector type.
  mlir::Value integer(mlir::Type type, int64_t value);
  mlir::Value real(mlir::Type type, double value);
  mlir::Value i64(int64_t value) { return integer(getI64Type(), value); }
  mlir::Value laneNumbers(); // 0, 1, .. as i32

  // Constants fold, so that addresses read as a person would write them.
  mlir::Value add(mlir::Value a, mlir::Value b) { return createOrFold<mlir::arith::AddIOp>(a, b); }
  mlir::Value mul(mlir::Value a, int64_t b) { return createOrFold<mlir::arith::MulIOp>(a, i64(b)); }
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c) { return mlir::LLVM::FMAOp::create(*this, a, b, c); }
  mlir::Value splat(mlir::Value scalar);

  // `index` counts elements of `element`.
  mlir::Value at(mlir::Value pointer, mlir::Value index, mlir::Type element);
  mlir::Value at(mlir::Value pointer, int64_t index, mlir::Type element);
  // Alignment is that of one element unless told: rows of tensors may start anywhere.
  mlir::Value load(mlir::Type type, mlir::Value pointer, unsigned alignment = 0);
  void store(mlir::Value value, mlir::Value pointer, unsigned alignment = 0);

  // for (i64 i = begin; i < end; i += step) body(i). One iteration needs no loop.
  void loop(int64_t begin, int64_t end, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  // The same with loop-carried values; the body returns their next values.
  llvm::SmallVector<mlir::Value>
  loop(int64_t begin, int64_t end, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  void branch(mlir::Value condition, llvm::function_ref<void()> thenBody, llvm::function_ref<void()> elseBody);
};

} // namespace nsa::cpu
