// Request -> candidates, and request -> output and manifest: what the C surface serves.
// Equal requests give equal bytes: no path, user, time or address enters an output, a manifest or a digest.
// Thread-safety: functions may be called from many threads at once.
#pragma once

#include "compiler/driver/Request.h"
#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace nsa {

struct CandidateSummary {
  std::string templateName;
  std::string config;
  double cost = 0;
};

struct CompileOutput {
  std::string bytes;    // of the asked stage
  std::string manifest; // binary stage only
  std::string timings;
};

Result<std::vector<CandidateSummary>> listCandidates(const CompilerRequest &request);
Result<CompileOutput> compileCandidate(const CompilerRequest &request);

} // namespace nsa
