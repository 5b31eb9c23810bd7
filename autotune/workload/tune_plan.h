// The plan of a run (the option --dry-run of `nsa tune`): which kernels a run would measure, which are stored, and how
// long it may take. Thread-safety: tune_plan.h has only pure functions.
#pragma once

#include "autotune/workload/tune_run.h"

namespace nsa {

// A model of devices, as the database knows it.
struct TunePlace {
  std::string key; // under which its choices are stored
  bool isGpu = false;
  bool runsStep = false; // the kernel `decode_step`
};
// Returns whether the devices of an architecture run the kernel `decode_step`.
bool targetRunsStep(const std::string &target);
// Returns the places that an architecture stands for: every device of the architecture that has stored kernels for the
// workloads, or, if there is none, the device name under which kernels for the architecture are stored (targetDevice).
Result<std::vector<TunePlace>> placesOfTarget(const std::string &target, const std::vector<Workload> &workloads,
                                              const TuneEnvironment &environment);

struct TunePlan {
  size_t kernels = 0, stored = 0; // of all places
  nlohmann::ordered_json report;
};
// The report: {"workload", "operators", "workloads": [{"name", "kernels", "shared"}], "devices": [{"device",
// "measure", "make", "stored", "seconds_about", "seconds_at_most"}], "kernels":
// [{"problem", "device", "do": "measure" | "make" | "nothing", ...}]}
Result<TunePlan> planWorkloads(const std::vector<Workload> &workloads, const TuneEnvironment &environment,
                               const std::vector<TunePlace> &places, const TuneLimits &limits);

} // namespace nsa
