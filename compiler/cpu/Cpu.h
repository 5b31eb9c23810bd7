// The entry point of the CPU backend: compiles a tile program to a position-independent image of machine code. If an
// operation cannot be lowered, the error of compileForCpu names the operation and its line in the template.
// Thread-safety: distinct MLIRContexts may be used from distinct threads.
#pragma once

#include "compiler/driver/Timings.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace nsa::cpu {

// The stage at which a compile for the CPU ends.
enum class CpuStage { kScheduled, kLlvm, kImage };

struct CpuOptions {
  std::string features; // "x86-64-v3", "x86-64-v4", or "" for the host's (runtime/base/cpu_features.h)
  CpuStage stage = CpuStage::kImage;
};

struct CpuKernel {
  std::string features; // the feature level of the code; it is part of the device key
  std::string entry;    // the function's name
  std::string text;     // stage kScheduled: loops of vectors; stage kLlvm: optimised LLVM IR
  std::vector<uint8_t> image;
  int64_t entryOffset = 0;  // a multiple of 64; the image must be mapped at a multiple of 64 too
  int64_t scratchBytes = 0; // per worker, aligned to 64
};

// `module` holds one parsed tile program, which is lowered in place. The error of a failed compile contains the
// diagnostics of the MLIR context.
Result<CpuKernel> compileForCpu(mlir::ModuleOp module, const CpuOptions &options, Timings &timings);

} // namespace nsa::cpu
