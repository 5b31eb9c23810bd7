// Checks a request of the C interface and converts it to C++ values. The error for a bad request names the field of
// nsa_compiler_request. Thread-safety: CompilerRequest is a value type.
#pragma once

#include "compiler/api/nsa_compiler.h"
#include "compiler/cuda/Nvrtc.h"
#include "compiler/driver/Target.h"
#include "runtime/base/problem.h"
#include "runtime/base/status.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace nsa {

// A program of one's own: its text, and the texts of its own libraries by their names.
struct ProgramSource {
  std::string name; // what messages call the text
  std::string text;
  std::map<std::string, std::string> libraries;
};

struct CompilerRequest {
  const Target *target = nullptr;
  std::string op;                 // the word that the manifest has
  std::optional<Operator> serves; // the operator; nullopt: `program` is asked for
  std::optional<ProgramSource> program;
  DType dtype = DType::kBf16; // fixed["dtype"]
  std::map<std::string, std::string> fixed;
  std::string templateName; // "": any template that serves the operator
  std::map<std::string, std::string> config;
  std::string templateFolder; // "": the embedded templates
  NvrtcSearch nvrtc;
  nsa_compiler_stage stage = NSA_COMPILER_STAGE_BINARY;
  std::string cpuFeatures; // the feature level that CPU code is made for; "" on a GPU

  // Checks every field of the request; the error names the first field that breaks a rule.
  static Result<CompilerRequest> parse(const nsa_compiler_request *request);

  // The values of the target (Target::values) and the values of the problem, in one Values object.
  Result<Values> values() const;
};

// The name of a stage as `nsa compile --emit` spells it: "template", "tile" and so on.
std::string_view stageName(nsa_compiler_stage stage);

} // namespace nsa
