// Makes the kernel of a problem without a measured one: the first candidate that compiles and is accepted.
// Thread-safety: may be called by many threads at once, as the library.
#pragma once

#include "runtime/engine/compiler_library.h"

#include <functional>
#include <vector>

namespace nsa {

struct DefaultKernelCallbacks {
  // Says whether a compiled kernel can serve. `request` is the request that it was compiled by.
  std::function<Status(const CompileRequest &request, CompiledKernel &kernel)> accept;
  // Receives each candidate that does not compile or is not accepted. May be empty.
  std::function<void(const Candidate &candidate, const Status &why)> refused;
};

// Tries `candidates` in their order. A template is given up after three failures. The error is that of the first
// failure.
Status makeDefaultKernel(const CompilerLibrary &library, CompileRequest request,
                         const std::vector<Candidate> &candidates, const DefaultKernelCallbacks &callbacks);

} // namespace nsa
