// A rendered tile program through parser, passes and the target's emitter. No MLIR type leaves this header.
// One MLIRContext per call and no MLIR threads: many calls may run at once.
#pragma once

#include "compiler/api/nsa_compiler.h"
#include "compiler/driver/Target.h"
#include "compiler/driver/Timings.h"
#include "runtime/base/manifest.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nsa {

struct TileCompile {
  const std::string &text; // rendered, line for line
  const std::string &file; // the template's name in errors
  const Target &target;
  const std::string &cpuFeatures;
  nsa_compiler_stage stage;
  const Manifest &title; // for the comment above emitted CUDA: template, operator, target, values
};

struct TileResult {
  // The asked stage's text: tile, scheduled, llvm. At the stages from cuda on: the emitted source, device library not
  // yet written into it.
  std::string text;
  std::vector<ManifestParam> params;
  int64_t sharedBytes = 0;
  // CPU binary
  std::vector<uint8_t> image;
  int64_t entryOffset = 0;
  int64_t scratchBytes = 0;
};

Result<TileResult> compileTileProgram(const TileCompile &compile, Timings &timings);

// "22.1.8": part of a CPU kernel's content key.
std::string llvmVersion();

} // namespace nsa
