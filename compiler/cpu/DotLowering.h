// Lowers tile.dot to register-blocked vector code: C[lanes] += A[lanes] * broadcast(B scalar).
// Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

// The accumulators in the innermost loop of a matrix product: `panels` vectors of rows by `columns` columns, which stay
// in registers.
struct MicroTile {
  int64_t panels = 1;
  int64_t columns = 1;
  bool operator==(const MicroTile &) const = default;
};

// Estimates the time of each shape by counting instructions, and returns, among the shapes that are about as fast as
// the fastest, the MicroTile with the least code. Every shape that is considered leaves registers for the operands,
// because spilled accumulators halve the speed.
MicroTile chooseMicroTile(int64_t lanes, int64_t panels, int64_t columns, bool masked);

struct DotOperands {
  mlir::Value a; // pointers
  mlir::Value b;
  mlir::Value acc; // null: sums start from zero
  // If `start` is given, each sum of the product starts from the value that `start` computes from the accumulator's
  // vectors. The argument `rows` of `start` is `firstRows` advanced by as many vectors as the panel is behind the first
  // panel.
  llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange panel, mlir::Value rows)> start;
  mlir::Value firstRows;
  mlir::Value result;
  TileStorage aStorage;
  TileStorage bStorage;
  TileStorage resultStorage;
  bool transposeB = false;
  bool zeroAnnihilates = false;
};

// `acc` and `result` may be the same buffer; the caller then passes the same mlir::Value for both.
void lowerDot(CpuBuilder &b, const DotOperands &dot);

} // namespace nsa::cpu
