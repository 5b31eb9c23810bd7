// Passes of the CPU backend. Errors of the passes are diagnostics of the MLIRContext that name the line of the
// template.
// Thread-safety: a pass belongs to one MLIRContext and is used by one thread.
#pragma once

#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>

namespace mlir {
class ModuleOp;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace nsa::cpu {

#define GEN_PASS_DECL
#include "compiler/cpu/Passes.h.inc"

// Makes the passes of the CPU backend known to nsa-opt by name.
void registerCpuPasses();

} // namespace nsa::cpu
