// Moves each tile.load to the place where its tile is first read. Templates load tiles early, because GPUs hide the
// latency of memory in this way. On a CPU a tile that is loaded early only takes room in the caches, and memory of its
// own.
// Thread-safety: sinkLoads runs in the one thread of the MLIRContext.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace nsa::cpu {

// Moves each tile.load of the function down. A load stops before an operation that reads its tile, and before an
// operation that writes to a tensor.
void sinkLoads(mlir::func::FuncOp function);

} // namespace nsa::cpu
