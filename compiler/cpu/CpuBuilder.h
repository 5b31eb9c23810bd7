// Builds the operations of generated CPU code: counted loops, addresses, and vectors of the target's width. A
// CpuBuilder is used for the lowering of one function.
// Thread-safety: only the thread that uses the MLIRContext of a CpuBuilder may use the CpuBuilder.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

// A pointer that a loop advances by `stride` bytes in each iteration.
struct Cursor {
  mlir::Value start;
  int64_t stride = 0;
};

class CpuBuilder : public mlir::ImplicitLocOpBuilder {
public:
  CpuBuilder(mlir::Location loc, mlir::MLIRContext *context, int64_t lanes)
      : ImplicitLocOpBuilder(loc, context), lanes(lanes) {}

  const int64_t lanes; // 32-bit lanes of a vector

  // `begin` must be called before any code is emitted. `begin` sets the insertion point to the end of `entry`, the
  // first block of the function.
  void begin(mlir::Block *entry);

  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({lanes}, element); }
  mlir::Type pointerType() { return mlir::LLVM::LLVMPointerType::get(getContext()); }

  // Returns a constant of a scalar or vector type. Equal constants are created only once, at the start of the function.
  mlir::Value integer(mlir::Type type, int64_t value);
  mlir::Value real(mlir::Type type, double value);
  mlir::Value i64(int64_t value) { return integer(getI64Type(), value); }
  mlir::Value laneNumbers(); // 0, 1, .. as i32

  // add() and mul() fold arithmetic on constants, which keeps addresses short.
  mlir::Value add(mlir::Value a, mlir::Value b) { return createOrFold<mlir::arith::AddIOp>(a, b); }
  mlir::Value mul(mlir::Value a, int64_t b) { return createOrFold<mlir::arith::MulIOp>(a, i64(b)); }
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c) { return mlir::LLVM::FMAOp::create(*this, a, b, c); }
  mlir::Value splat(mlir::Value scalar);

  // Returns the address of element number `index`, or the address `bytes` bytes after `pointer`.
  mlir::Value at(mlir::Value pointer, mlir::Value index, mlir::Type element);
  mlir::Value at(mlir::Value pointer, int64_t bytes);
  // The default alignment of a load or store is the alignment of one element, because rows of tensors may start
  // anywhere.
  mlir::Value load(mlir::Type type, mlir::Value pointer, unsigned alignment = 0);
  void store(mlir::Value value, mlir::Value pointer, unsigned alignment = 0);

  // Builds `for (i64 i = 0; i < count; ++i) body(i, pointers)`, where each pointer advances by its stride. For a count
  // of 1 the body is emitted without a loop. The loop carries a pointer for each cursor, so that each address in the
  // body is a register plus a constant.
  void walk(int64_t count, llvm::ArrayRef<Cursor> cursors,
            llvm::function_ref<void(mlir::Value, mlir::ValueRange)> body);
  // A walk with loop-carried values. `body` receives the loop-carried values of an iteration and returns the values for
  // the next iteration.
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
