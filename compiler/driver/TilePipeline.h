// Compiles a tile program: types it for the values of a candidate, lowers it, runs the passes, and generates code for
// the target. TilePipeline.h uses
// no MLIR type, so that its users do not include MLIR.
// Thread-safety: each call of compileTileProgram has an MLIRContext of its own without MLIR threads, so many calls may
// run at once.
#pragma once

#include "compiler/api/nsa_compiler.h"
#include "compiler/driver/Target.h"
#include "compiler/driver/Timings.h"
#include "compiler/language/types/Declarations.h"
#include "runtime/base/manifest.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

struct TileCompile {
  const language::SyntaxTree &kernel;
  language::LibraryResolver libraries;
  const language::GivenValues &values; // of the problem, the target and the candidate
  const Target &target;
  const std::string &cpuFeatures;
  nsa_compiler_stage stage;
  const Manifest &title; // template, operator, target and values, for the comment above emitted CUDA
};

struct TileResult {
  // The program as text after the requested stage: tile, scheduled or llvm. From stage cuda on, `text` is the emitted
  // CUDA source, into which the device library has not yet been written.
  std::string text;
  std::string warnings; // as CompileOutput's
  std::vector<ManifestParam> params;
  int64_t sharedBytes = 0;
  // `image`, `entryOffset` and `scratchBytes` are set only for stage binary on the CPU, and mean the same as in
  // CpuKernel (compiler/cpu/Cpu.h).
  std::vector<uint8_t> image;
  int64_t entryOffset = 0;
  int64_t scratchBytes = 0;
};

// Errors of compileTileProgram name the line of the program or of the library. `timings` receives the time of each step
// of the compile.
Result<TileResult> compileTileProgram(const TileCompile &compile, Timings &timings);

// The version of LLVM, for example "22.1.8". The content key of a CPU kernel contains the version of LLVM.
std::string llvmVersion();

} // namespace nsa
