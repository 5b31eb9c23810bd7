// Makes the kernel of a problem that has no measured kernel: the first candidate that compiles and is accepted.
// Thread-safety: makeDefaultKernel may be called by many threads at once.
#pragma once

#include "runtime/engine/compile/compiler_library.h"

#include <functional>
#include <vector>

namespace nsa {

// Tries `candidates` in their order, until `accept` takes one: it returns an error if a plan cannot use the kernel that
// was compiled by `request`. After three failed candidates of one template, makeDefaultKernel tries no further
// candidate of the template. `refused` is called with each candidate that does not compile or is not accepted, unless
// an earlier one failed with the same error, as an error of types is; it may be empty. If every tried candidate fails,
// makeDefaultKernel returns the error of the first candidate.
Status makeDefaultKernel(const CompilerLibrary &library, CompileRequest request,
                         const std::vector<Candidate> &candidates,
                         const std::function<Status(const CompileRequest &request, CompiledKernel &kernel)> &accept,
                         const std::function<void(const Candidate &candidate, const Status &why)> &refused = {});

} // namespace nsa
