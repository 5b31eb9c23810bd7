// Measures how long the compiler library takes to compile a kernel, without the time of loading the library.
// Thread-safety: one thread.
#pragma once

#include "runtime/base/problem.h"

#include <string>

namespace nsa::bench {

struct CompileTime {
  double wallMs = 0, cpuMs = 0; // medians; CPU time is of the whole process
  double openMs = 0;            // wall time of opening the library and compiling the first kernel
  std::string templateName, config;
};

// Compiles the default kernel of the spec for this processor `samples` times, after one compile that is not counted.
// Each compile renders, lowers and generates the code anew, because the library does not cache kernels.
Result<CompileTime> measureCompileTime(const std::string &compilerPath, const Spec &spec, int samples);

} // namespace nsa::bench
