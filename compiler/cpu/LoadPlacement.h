// Moves each tile.load to the place where its tile is first read. Templates load tiles early, because GPUs hide the
// latency of memory in this way. On a CPU a tile that is loaded early only occupies cache and extra scratch memory.
// Thread-safety: sinkLoads runs in the one thread of the MLIRContext.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace nsa::cpu {

// Moves each tile.load of the function down as far as possible. A load is never moved past an operation that reads its
// tile or that writes to a tensor.
void sinkLoads(mlir::func::FuncOp function);

} // namespace nsa::cpu
