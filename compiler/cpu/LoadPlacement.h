// Moves each tile.load to the place where its tile is first read. Templates load early, because GPUs need it. On a CPU
// an early tile only takes room in the caches, and memory of its own.
// Thread-safety: as the MLIRContext, one thread.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace nsa::cpu {

// A load stops before an operation that reads its tile, and before an operation that writes to a tensor.
void sinkLoads(mlir::func::FuncOp function);

} // namespace nsa::cpu
