// The kernel of a problem that nobody has measured: the first candidate that compiles and serves.
// Thread-safety: may be called by many threads at once, as the library.
#pragma once

#include "runtime/engine/compiler_library.h"

#include <functional>
#include <vector>

namespace nsa {

struct DefaultKernelCallbacks {
  // Whether a kernel that compiled serves; the request is the one that it was compiled by.
  std::function<Status(const CompileRequest &request, CompiledKernel &kernel)> accept;
  // Told of each candidate that does not compile or serve; may be empty.
  std::function<void(const Candidate &candidate, const Status &why)> refused;
};

// `candidates` in the order in which they are tried; of a template whose first three fail no more are. The error is the
// first one's.
Status makeDefaultKernel(const CompilerLibrary &library, CompileRequest request,
                         const std::vector<Candidate> &candidates, const DefaultKernelCallbacks &callbacks);

} // namespace nsa
