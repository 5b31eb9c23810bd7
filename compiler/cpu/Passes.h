// Passes of the CPU backend. Errors are diagnostics of the context, at the template's lines.
// Belongs to one context; used by one thread.
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

// For nsa-opt: the passes by name.
void registerCpuPasses();

} // namespace nsa::cpu
