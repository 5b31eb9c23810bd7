// Lowers tile.dot to register-blocked vector code: C[lanes] += A[lanes] * broadcast(B scalar).
// Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nsa::cpu {

// The block of accumulators that the innermost loop of a matrix product keeps in registers: `panels` times `columns`
// vectors. Each vector holds one column of a panel of rows (TileStorage.h).
struct MicroTile {
  int64_t panels = 1;
  int64_t columns = 1;
  bool operator==(const MicroTile &) const = default;
};

// Chooses the MicroTile for a matrix product. The time of each MicroTile is estimated by counting instructions. Of all
// MicroTiles that are about as fast as the fastest MicroTile, the function returns the MicroTile with the least code.
// Only MicroTiles that leave registers for the operands are considered, because spilled accumulators halve the speed.
MicroTile chooseMicroTile(int64_t lanes, int64_t panels, int64_t columns, bool masked);

struct DotOperands {
  mlir::Value a; // pointers
  mlir::Value b;
  mlir::Value acc; // null: sums start from zero
  // A function that computes the first values of the product's sums from the accumulator's vectors; if `start` is null,
  // the sums start from the accumulator's vectors themselves. Each call of `start` computes the sums of one panel, and
  // `panel` holds the accumulator's vectors of this panel. The argument `rows` of `start` is a pointer: for panel
  // number n it is `firstRows` plus n times the size of a vector.
  llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange panel, mlir::Value rows)> start;
  mlir::Value firstRows;
  mlir::Value result;
  TileStorage aStorage;
  TileStorage bStorage;
  TileStorage resultStorage;
  // If `transposeA` is set, `a` is stored in the layout `row_major` as K rows of M elements; otherwise it is stored in
  // the layout `lanes` as M rows of K elements.
  bool transposeA = false;
  bool transposeB = false;
  bool zeroAnnihilates = false;
};

// `acc` and `result` of `dot` may be the same buffer; in this case the caller passes the same mlir::Value for `acc` and
// for `result`.
void lowerDot(CpuBuilder &b, const DotOperands &dot);

} // namespace nsa::cpu
