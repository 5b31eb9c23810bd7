// Compiles the kernels of workloads for an architecture, without a device of that architecture: for each kernel the
// default candidate. The default kernel is stored as an untuned choice under the name of the architecture, where a
// device of that architecture finds it if it has no choice of its own.
// Thread-safety: one thread calls the functions, which start threads that compile.
#pragma once

#include "tools/nsa/tune_run.h"

namespace nsa::tools {

struct TuneCompileOptions {
  std::vector<std::string> targets;
  EngineSettings engine; // its cache, compiler, NVRTC, template folder and threads count
  bool again = false;    // compiles also what is stored already
  std::function<void(const std::string &line)> print;
};
// Returns a report like the report of runWorkloads, but without times. Each kernel of each target is "made", "stored"
// or "failed".
Result<nlohmann::ordered_json> compileWorkloads(const std::vector<Workload> &workloads,
                                                const TuneCompileOptions &options);

} // namespace nsa::tools
