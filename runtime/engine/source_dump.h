// Writes what a kernel was made from into a folder, for people (`dump_dir`): rendered template, scheduled program,
// CUDA or LLVM text, manifest, binary.
#pragma once

#include "runtime/engine/compiler_library.h"

#include <string>

namespace nsa {

// Files are named after operator, template, target and the first digits of the content. A link or a folder of that name
// stays.
Status dumpSources(const CompilerLibrary &compiler, const CompileRequest &request, const CompiledKernel &kernel,
                   const std::string &folder);

} // namespace nsa
