// Moves tile.load to where its tile is first read.
// Templates load early, which GPUs need; here the tile would only take room in the caches, and memory of its own.
// Thread-safety: as the MLIRContext, one thread.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace nsa::cpu {

void sinkLoads(mlir::func::FuncOp function);

} // namespace nsa::cpu
