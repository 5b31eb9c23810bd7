// The vocabulary that generated CPU code is written in: counted loops, addresses, vectors of the target's width.
// A builder belongs to one lowering. Thread-safety: as the MLIRContext, one thread.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

// A pointer that a loop moves on by `stride` bytes with each iteration.
struct Cursor {
  mlir::Value start;
  int64_t stride = 0;
};

class CpuBuilder : public mlir::ImplicitLocOpBuilder {
public:
  CpuBuilder(mlir::Location loc, mlir::MLIRContext *context, int64_t lanes)
      : ImplicitLocOpBuilder(loc, context), lanes(lanes) {}

  const int64_t lanes; // 32 bit lanes of a vector

  // To be called before anything is emitted: from here on code goes to the end of `entry`, the function's first block.
  void begin(mlir::Block *entry);

  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({lanes}, element); }
  mlir::Type pointerType() { return mlir::LLVM::LLVMPointerType::get(getContext()); }

  // Constants of a scalar or vector type; each exists once, at the function's start.
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
  mlir::Value at(mlir::Value pointer, int64_t bytes);
  // Alignment is that of one element unless told: rows of tensors may start anywhere.
  mlir::Value load(mlir::Type type, mlir::Value pointer, unsigned alignment = 0);
  void store(mlir::Value value, mlir::Value pointer, unsigned alignment = 0);

  // for (i64 i = 0; i < count; ++i) body(i, pointers), where each pointer advances by its stride. One iteration needs
  // no loop. Code that walks memory carries pointers, so that an address is a register and a constant as it is emitted.
  void walk(int64_t count, llvm::ArrayRef<Cursor> cursors,
            llvm::function_ref<void(mlir::Value, mlir::ValueRange)> body);
  // The same with loop-carried values; the body returns their next values.
  llvm::SmallVector<mlir::Value>
  walk(int64_t count, llvm::ArrayRef<Cursor> cursors, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange, mlir::ValueRange)> body);
  void branch(mlir::Value condition, llvm::function_ref<void()> thenBody, llvm::function_ref<void()> elseBody);

private:
  mlir::Value constant(mlir::TypedAttr value);

  mlir::Block *entry = nullptr;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
};

} // namespace nsa::cpu
