// How long the compiler library takes for a kernel once it is open.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/problem.h"

#include <string>

namespace nsa::bench {

struct CompileTime {
  double wallMs = 0, cpuMs = 0; // medians; CPU time is that of the whole process
  double openMs = 0;            // opening the library and compiling the first kernel, wall
  std::string templateName, config;
};

// The compiler's best guess for the spec on this processor, compiled `samples` times after a first one. Each of them
// renders, lowers and generates code anew: the library keeps no kernels.
Result<CompileTime> measureCompileTime(const std::string &compilerPath, const Spec &spec, int samples);

} // namespace nsa::bench
