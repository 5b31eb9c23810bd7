// Passes over tile programs. Prefer the pipelines: the passes rely on their order
// (docs/decisions/0001-tile-programs.md). Errors are diagnostics of the context, at the template's lines. Passes keep
// the names of values (TileProgram.h). Belongs to one context; used by one thread.
#pragma once

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace nsa::tile {

// From a parsed tile program to what the CUDA emitter prints. `sharedLimit`: bytes that a block may use.
void buildGpuPipeline(mlir::OpPassManager &manager, int64_t sharedLimit);

// From a parsed tile program to what LowerToCpu lowers.
void buildCpuPipeline(mlir::OpPassManager &manager);

// For nsa-opt: all passes by name, and the pipelines as tile-gpu{shared-limit=..} and tile-cpu.
void registerTilePasses();

enum class LayoutTarget { kCpu, kGpu };

#define GEN_PASS_DECL
#include "compiler/passes/Passes.h.inc"

} // namespace nsa::tile
