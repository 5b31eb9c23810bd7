// Writes the sources of a kernel into the folder `dump_dir`, so that a person can read them: rendered template,
// scheduled program, CUDA or LLVM text, manifest, binary.
// Thread-safety: dumpSources may be called by many threads at once.
#pragma once

#include "runtime/engine/compile/compiler_library.h"

#include <string>

namespace nsa {

// Writes the files. The name of a dumped file has operator, template, target and the first digits of the content. If a
// link or a folder already has the name of a file to write, dumpSources does not replace it.
Status dumpSources(const CompilerLibrary &compiler, const CompileRequest &request, const CompiledKernel &kernel,
                   const std::string &folder);

} // namespace nsa
