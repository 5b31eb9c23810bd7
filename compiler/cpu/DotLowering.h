// tile.dot as register-blocked vector code: C[lanes] += A[lanes] * broadcast(B scalar).
// Thread-safety: none beyond the builder's.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

// Accumulators of the innermost loop: `panels` vectors of rows by `columns` columns stay in registers.
struct MicroTile {
  int64_t panels = 1;
  int64_t columns = 1;
  bool operator==(const MicroTile &) const = default;
};

// Of the shapes that leave registers for the operands (spilled accumulators halve the speed) and are about as fast as
// any, by a count of instructions, the one with the least code.
MicroTile chooseMicroTile(int64_t lanes, int64_t panels, int64_t columns, bool masked);

struct DotOperands {
  mlir::Value a; // pointers
  mlir::Value b;
  mlir::Value acc; // null: starts from zero
  // Where given, sums start from what this makes of the accumulator's vectors. `rows` is as far from `firstRows` as the
  // vectors' panel from the first one, in vectors.
  llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange panel, mlir::Value rows)> start;
  mlir::Value firstRows;
  mlir::Value result;
  TileStorage aStorage;
  TileStorage bStorage;
  TileStorage resultStorage;
  bool transposeB = false;
  bool zeroAnnihilates = false;
};

// `acc` and `result` may be one buffer; they are then the same value.
void lowerDot(CpuBuilder &b, const DotOperands &dot);

} // namespace nsa::cpu
