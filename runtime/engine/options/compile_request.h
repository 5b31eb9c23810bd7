// Makes the requests by which the compiler library lists and compiles the kernels of a problem.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/manifest.h"
#include "runtime/engine/choices/problem_key.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/options/options.h"

#include <string>

namespace nsa {

// Returns the request for all kernels of a problem on a target. `options` has the folder of templates, NVRTC and the
// vector instructions of a CPU.
CompileRequest requestOf(const ProblemKey &problem, const EngineOptions &options, const std::string &target);
// Returns the request that compiles the configuration of a stored kernel again, for the target and the vector
// instructions that the kernel was compiled for.
CompileRequest requestOf(const Manifest &stored, const EngineOptions &options);

} // namespace nsa
