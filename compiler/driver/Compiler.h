// The two services behind the C interface (compiler/api/nsa_compiler.h): list the candidates of a request, and compile
// one of them. Equal compile requests give equal bytes: no path, user, time or address enters an output, a manifest or
// a digest.
// Thread-safety: listCandidates and compileCandidate may be called from many threads at once.
#pragma once

#include "compiler/driver/Request.h"
#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace nsa {

struct CandidateSummary {
  std::string templateName;
  std::string config;
  double cost = 0; // predicted time; only the order of costs means anything
};

struct CompileOutput {
  std::string bytes;    // the output of the requested stage
  std::string manifest; // binary stage only
  std::string timings;  // as Timings::text()
  // What `nsa check` warns of in the text of a program of one's own, for the values and choices of the request: a line
  // for each warning, "softmax.tile:12:7: warning: ...".
  std::string warnings;
};

// Returns the candidates of a request, the candidate with the lowest predicted time first. If the request has no
// admissible candidate, listCandidates returns an error with the reason instead of an empty list.
Result<std::vector<CandidateSummary>> listCandidates(const CompilerRequest &request);
// Compiles the candidate with the lowest predicted time among the candidates that have the template and the choices
// named in the request.
Result<CompileOutput> compileCandidate(const CompilerRequest &request);

} // namespace nsa
