// Makes the kernel of a problem that has no measured kernel: the first candidate that compiles and is accepted.
// Thread-safety: makeDefaultKernel may be called by many threads at once.
#pragma once

#include "runtime/engine/compile/compiler_library.h"

#include <functional>
#include <vector>

namespace nsa {

struct DefaultKernelCallbacks {
  // A function that returns an error if a plan cannot use the compiled kernel. `request` is the request by which the
  // kernel was compiled.
  std::function<Status(const CompileRequest &request, CompiledKernel &kernel)> accept;
  // A function that is called with each candidate that does not compile or that `Accept` refuses. `refused` may be
  // empty.
  std::function<void(const Candidate &candidate, const Status &why)> refused;
};

// Tries `candidates` in their order. After three failed candidates of one template, makeDefaultKernel tries no further
// candidate of the template. If every tried candidate fails, makeDefaultKernel returns the error of the first
// candidate.
Status makeDefaultKernel(const CompilerLibrary &library, CompileRequest request,
                         const std::vector<Candidate> &candidates, const DefaultKernelCallbacks &callbacks);

} // namespace nsa
