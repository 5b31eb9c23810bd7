// Compiles what workloads ask for without a device: the default of each kernel for an architecture, stored untuned
// under the architecture's own name, where a device of that architecture finds it when it has nothing better.
// Thread-safety: one thread; it starts those that compile.
#pragma once

#include "tools/nsa/tune_run.h"

namespace nsa::tools {

struct TuneCompileOptions {
  std::vector<std::string> targets;
  EngineSettings engine; // cache, compiler, NVRTC, template folder, threads
  bool again = false;    // also what is stored already
  std::function<void(const std::string &line)> print;
};
// A report as runWorkloads', without times: each kernel of each target "made", "stored" or "failed".
Result<nlohmann::ordered_json> compileWorkloads(const std::vector<Workload> &workloads,
                                                const TuneCompileOptions &options);

} // namespace nsa::tools
