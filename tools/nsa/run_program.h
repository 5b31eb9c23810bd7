// `nsa run --program`: a program of one's own over the tensors of a file, or over drawn ones.
// Thread-safety: one thread.
#pragma once

#include "tools/nsa/command/program_flags.h"

#include <string>

namespace nsa::tools {

struct ProgramRun {
  const ProgramFlags &program;
  std::string inputPath; // "": the tensors are drawn
  std::string outputPath;
  const EngineSettings &settings;
  bool allOutputs = false; // the optional ones too
  bool check = false;      // first in the interpreter, whose findings are errors
  bool json = false;
};
Status runProgram(const ProgramRun &run);

} // namespace nsa::tools
