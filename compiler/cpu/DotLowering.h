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

// Chooses the MicroTile with the least code among the shapes that are about as fast as the fastest shape, by a count of
// instructions. All candidates leave registers for the operands, because spilled accumulators halve the speed.
MicroTile chooseMicroTile(int64_t lanes, int64_t panels, int64_t columns, bool masked);

struct DotOperands {
  mlir::Value a; // pointers
  mlir::Value b;
  mlir::Value acc; // null: sums start from zero
  // If `start` is given, the sums of a product start from the result of `start`, applied to vectors of the accumulator.
  // The argument `rows` of `start` is as far from `firstRows` as its panel is from the first panel, counted in vectors.
  llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange panel, mlir::Value rows)> start;
  mlir::Value firstRows;
  mlir::Value result;
  TileStorage aStorage;
  TileStorage bStorage;
  TileStorage resultStorage;
  bool transposeB = false;
  bool zeroAnnihilates = false;
};

// `acc` and `result` may be one buffer, which is then given as one mlir::Value.
void lowerDot(CpuBuilder &b, const DotOperands &dot);

} // namespace nsa::cpu
