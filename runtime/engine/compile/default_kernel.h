// Makes the kernel of a problem that has no measured kernel: the first candidate that compiles and is accepted. Lists
// the candidates for a kernel with which others are compared. Thread-safety: all functions may be called by many
// threads at once.
#pragma once

#include "runtime/engine/compile/compiler_library.h"

#include <functional>
#include <map>
#include <string>
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

// Lists the candidates of the request whose configuration has `choices`, in the order of predicted costs. `choices` are
// what the clause `reference` of a program of one's own fixes. The error says that no candidate has them.
Result<std::vector<Candidate>> listReference(const CompilerLibrary &library, const CompileRequest &request,
                                             const std::map<std::string, std::string> &choices);

} // namespace nsa
