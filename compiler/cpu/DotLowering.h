// tile.dot as register-blocked vector code: C[lanes] += A[lanes] * broadcast(B scalar).
// Thread-safety: none beyond the builder's.
#pragma once

#include "compiler/cpu/CpuBuilder.h"
#include "compiler/cpu/TileStorage.h"

namespace nsa::cpu {

// Accumulators of the innermost loop: `panels` vectors of rows by `columns` columns stay in registers.
struct MicroTile {
  int64_t panels = 1;
  int64_t columns = 1;
  bool operator==(const MicroTile &) const = default;
};

// The fastest shape by a count of instructions that leaves registers for the operands. Spilled accumulators halve the
// speed.
MicroTile chooseMicroTile(int64_t lanes, int64_t panels, int64_t columns, bool masked);

struct DotOperands {
  mlir::Value a; // pointers
  mlir::Value b;
  mlir::Value acc; // null: starts from zero
  mlir::Value result;
  TileStorage aStorage;
  TileStorage bStorage;
  TileStorage resultStorage;
  bool transposeB = false;
  bool zeroAnnihilates = false;
};

// `acc` and `result` may be one buffer.
void lowerDot(CpuBuilder &b, const DotOperands &dot);

} // namespace nsa::cpu
