// Compiles the kernels of workloads without a device: the default of each kernel for an architecture. A default kernel
// is stored untuned under the architecture's own name, where a device of that architecture finds it when it has nothing
// better. Thread-safety: one thread; it starts those that compile.
#pragma once

#include "tools/nsa/tune_run.h"

namespace nsa::tools {

struct TuneCompileOptions {
  std::vector<std::string> targets;
  EngineSettings engine; // its cache, compiler, NVRTC, template folder and threads count
  bool again = false;    // compiles also what is stored already
  std::function<void(const std::string &line)> print;
};
// Returns a report like that of runWorkloads, without times. Each kernel of each target is "made", "stored" or
// "failed".
Result<nlohmann::ordered_json> compileWorkloads(const std::vector<Workload> &workloads,
                                                const TuneCompileOptions &options);

} // namespace nsa::tools
