// The plan of `nsa tune --dry-run`: which kernels a run would measure, which are stored, and how long it may take.
// Thread-safety: tune_plan.h has only pure functions.
#pragma once

#include "tools/nsa/tune/tune_run.h"

namespace nsa::tools {

struct TunePlanOptions {
  // `devices` has the names of devices, and each device is opened. `targets` has the names of architectures, for which
  // no device is opened. For an architecture, a kernel counts as stored if it is stored for any device of that
  // architecture.
  std::vector<std::string> devices, targets;
  EngineSettings engine;
  double budgetSeconds = 0;
  bool again = false;
};
// The plan as JSON: {"workload", "operators", "workloads": [{"name", "kernels", "shared"}], "devices": [{"device",
// "measure", "make", "stored", "seconds_about", "seconds_at_most"}], "kernels":
// [{"problem", "device", "do": "measure" | "make" | "nothing", ...}]}
Result<nlohmann::ordered_json> planWorkloads(const std::vector<Workload> &workloads, const TunePlanOptions &options);

} // namespace nsa::tools
