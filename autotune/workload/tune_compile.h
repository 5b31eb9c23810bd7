// Compiles the kernels of workloads for an architecture, without a device of that architecture. For each kernel the
// compiler's default candidate is compiled, and nothing is measured. The compiled kernel is stored in the kernel
// database for all devices of the architecture. A device uses a kernel that is stored for all devices of its
// architecture only if the database has no kernel for the device's own model.
// Thread-safety: one thread calls the functions, which start threads that compile.
#pragma once

#include "autotune/workload/tune_run.h"

namespace nsa {

struct TuneCompileOptions {
  std::vector<std::string> targets;
  bool again = false;  // compiles also what is stored already
  TuneCallback tell{}; // is called for each kernel that is compiled; may be empty
};
// `engine` has resolved options: the database, the compiler, NVRTC, the template folder, the threads and cpu_features
// count. Returns a report like the report of runWorkloads, but without times. The report gives each kernel a status for
// each target: "made", "stored" (by an earlier run) or "failed".
Result<nlohmann::ordered_json> compileWorkloads(const std::vector<Workload> &workloads, const EngineOptions &engine,
                                                const TuneCompileOptions &options);

} // namespace nsa
