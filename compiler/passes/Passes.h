// Passes over tile programs. Callers should run the pipelines instead of single passes, because the passes work only in
// the right order (docs/decisions/0001-tile-programs.md). Errors of passes are diagnostics of the MLIRContext, at the
// lines of the template. Passes preserve the template's names of values (TileProgram.h).
// Thread-safety: a pass belongs to one MLIRContext and is used by one thread.
#pragma once

#include "compiler/dialect/Tile.h"

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace nsa::tile {

// Turns a parsed tile program into the form that the CUDA emitter prints. `sharedLimit` is the number of bytes of
// shared memory that a block may use.
void buildGpuPipeline(mlir::OpPassManager &manager, int64_t sharedLimit);

// Turns a parsed tile program into the form that LowerToCpu lowers.
void buildCpuPipeline(mlir::OpPassManager &manager);

// Registers all tile passes under their names for nsa-opt, and the pipelines under the names tile-gpu{shared-limit=..}
// and tile-cpu.
void registerTilePasses();

#define GEN_PASS_DECL
#include "compiler/passes/Passes.h.inc"

} // namespace nsa::tile
