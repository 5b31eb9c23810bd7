// The CPU backend's door: a tile program -> a position-independent image.
// Errors name what the program does that has no lowering, at the template's lines.
// Thread-safety: distinct contexts may be used from distinct threads.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace nsa::cpu {

// How far to compile; what comes before is always made.
enum class CpuStage { kScheduled, kLlvm, kImage };

struct CpuOptions {
  std::string features; // "x86-64-v3", "x86-64-v4", or "" for the host's (runtime/base/cpu_features.h)
  CpuStage stage = CpuStage::kImage;
};

// Milliseconds spent.
struct CpuTimings {
  double passes = 0; // tile program -> LLVM dialect
  double translate = 0;
  double optimize = 0;
  double codegen = 0; // object and image
};

struct CpuKernel {
  std::string features;      // the level it was compiled for: part of the device key
  std::string entry;         // the function's name
  std::string scheduledText; // stage kScheduled only: loops of vectors
  std::string llvmText;      // stage kLlvm only: optimised LLVM IR
  std::vector<uint8_t> image;
  int64_t entryOffset = 0;  // a multiple of 64; map the image at a multiple of 64 as well
  int64_t scratchBytes = 0; // for each worker, aligned to 64
  CpuTimings timings;
};

// `module` holds one tile program, as parsed; it is lowered in place. Diagnostics of the context go into the error.
Result<CpuKernel> compileForCpu(mlir::ModuleOp module, const CpuOptions &options);

} // namespace nsa::cpu
