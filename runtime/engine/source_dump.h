// Writes what a kernel was made from into a folder, for people (`dump_dir`): rendered template, scheduled program, CUDA
// or LLVM text, manifest, binary.
// Thread-safety: pure functions of the file system.
#pragma once

#include "runtime/engine/compiler_library.h"

#include <string>

namespace nsa {

// Writes the files. The name of a dumped file has operator, template, target and the first digits of the content. A
// link or a folder that has the name of a dumped file is not replaced.
Status dumpSources(const CompilerLibrary &compiler, const CompileRequest &request, const CompiledKernel &kernel,
                   const std::string &folder);

} // namespace nsa
