// Finds out which kernels of a workload are already stored in the kernel database and the packs, in the same way as an
// engine finds them, and under which device names. A stored choice says which kernel computes a problem. A measured
// choice also keeps the measurements of the tuner. If neither a database nor a pack exists, every lookup has an empty
// result.
// Thread-safety: many threads may call the functions of stored_choices.h at once.
#pragma once

#include "autotune/workload/tune_jobs.h"
#include "runtime/engine/choices/kernel_cache.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa {

// Returns whether the tuner measured every candidate before it made the choice.
bool wasExhaustive(const StoredChoice &choice);

// The rules for a stored choice. If a stored choice breaks one of the rules, `nsa tune` tunes the kernel again.
struct StoredRules {
  std::string revision; // of the compiler
  bool exhaustive = false;
};
// Returns the choice that is stored for `job` on `device`, or nullopt if the kernel must be tuned again. The choice
// must come from the compiler revision `rules.revision`, and its kernel must be undamaged in the database or in a pack.
// If the kernel has more than one candidate, the tuner must have measured candidates to make the choice. If
// `rules.exhaustive` is set, the tuner must have measured every candidate.
std::optional<StoredChoice> findStoredChoice(KernelCache &cache, const TuneJob &job, const std::string &device,
                                             const StoredRules &rules);
// Stores the choice of the job `from` for the job `to` as well, so that both jobs use one kernel. The jobs `from` and
// `to` must be for the same operator with the same compiled-in values (TuneJob::family), and the compiler must offer
// only one candidate for their kernel.
Status copyStored(KernelCache &cache, const TuneJob &from, const TuneJob &to, const std::string &device);

// A device with stored thresholds.
struct RoutedDevice {
  std::string key;       // under which they are stored
  bool runsStep = false; // it runs the kernel `decode_step`
};
// Returns the jobs of the workloads (`expand`), with the kernels that the rules and the measured thresholds (runtime/
// engine/choices/routes.h) of the devices give a call in addition.
Result<std::vector<TuneJob>> expandRouted(const std::vector<Workload> &workloads, const RouteRules &rules,
                                          KernelCache &cache, const std::vector<RoutedDevice> &devices);

// Returns the names of the devices with at least one stored kernel that computes an operator of `jobs` and was compiled
// for the architecture `target`.
std::set<std::string> devicesOf(KernelCache &cache, const std::string &target, const std::vector<TuneJob> &jobs);
// Returns the device name under which kernels for `target` are stored by a machine that compiles and needs no device of
// the architecture. The device name of a GPU architecture is the name of the architecture. A GPU of this architecture
// uses the kernels that are stored under this name if none are stored for its own model. The target "cpu" stands for
// all processors with the vector instructions `cpuFeatures`, which share one device name. An empty text `cpuFeatures`
// means the instructions of this processor.
Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures);

} // namespace nsa
