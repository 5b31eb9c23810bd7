// The C request, checked and as C++ values. Errors name the field as the C header does.
// Thread-safety: a value type.
#pragma once

#include "compiler/api/nsa_compiler.h"
#include "compiler/cuda/Nvrtc.h"
#include "compiler/driver/Target.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <map>
#include <string>
#include <string_view>

namespace nsa {

struct CompilerRequest {
  const Target *target = nullptr;
  Operator op = Operator::kWindow;
  DType dtype = DType::kBf16; // fixed["dtype"]
  std::map<std::string, std::string> fixed;
  std::string templateName; // "": any
  std::map<std::string, std::string> config;
  std::string templateFolder; // "": the embedded templates
  NvrtcSearch nvrtc;
  nsa_compiler_stage stage = NSA_COMPILER_STAGE_BINARY;
  std::string cpuFeatures; // a level that the target's code is made for; "" on a GPU

  static Result<CompilerRequest> parse(const nsa_compiler_request *request);

  // The driver's values (Target::values) and the problem's, under one roof.
  Result<Values> values() const;
};

// "template", "tile", ...: the names of `nsa compile --emit`.
std::string_view stageName(nsa_compiler_stage stage);

} // namespace nsa
