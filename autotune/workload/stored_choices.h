// Finds out which kernels of a workload are already stored in the kernel database and the packs, in the same way as an
// engine finds them. A stored choice says which kernel computes a problem. A measured choice also keeps the
// measurements of the tuner. If neither a database nor a pack exists, every lookup has an empty result.
// Thread-safety: many threads may call the functions of stored_choices.h at once.
#pragma once

#include "autotune/workload/tune_jobs.h"
#include "runtime/engine/choices/kernel_cache.h"

#include <memory>
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

class StoredChoices {
public:
  // kWrite is for programs that will write into the database. With kWrite, a database that exists is opened for
  // writing. A database that does not exist is created by the first write, or by KernelCache::checkKept.
  enum class Access { kRead, kWrite };
  StoredChoices(std::shared_ptr<KernelCache> own, Access access) : cache(std::move(own)) {
    if (access == Access::kWrite)
      cache->open();
  }

  // Returns the choice that is stored for `job` on `device`, or nullopt if the kernel must be tuned again. The choice
  // must come from the compiler revision `rules.revision`, and its kernel must be undamaged in the database or in a
  // pack. If the kernel has more than one candidate, the tuner must have measured candidates to make the choice. If
  // `rules.exhaustive` is set, the tuner must have measured every candidate.
  std::optional<StoredChoice> find(const TuneJob &job, const std::string &device, const StoredRules &rules);
  // Returns the names of the devices with at least one stored kernel that computes an operator of `jobs` and was
  // compiled for the architecture `target`.
  std::set<std::string> devicesOf(const std::string &target, const std::vector<TuneJob> &jobs);
  // Returns the measured threshold (StoredRoute) that is stored for a family, a device and a name, or nullopt if no
  // such threshold is stored.
  std::optional<StoredRoute> routeOf(const std::string &family, const std::string &device, const std::string &name);

  // Measured thresholds (runtime/engine/choices/routes.h) may change which kernels (steps) a call launches. For each
  // device in `devices`, routedSteps returns the steps that the call launches on the device.
  std::vector<Step> routedSteps(const Spec &spec, const Maxima &maxima, const RouteRules &rules,
                                const std::vector<std::string> &devices);
  // Needs kWrite.
  Status put(const StoredRoute &route) { return cache->putRoute(route); }
  // Stores the choice of the job `from` for the job `to` as well, so that both jobs use one kernel. The jobs `from` and
  // `to` must be for the same operator with the same compiled-in values (TuneJob::family), and the compiler must offer
  // only one candidate for their kernel. Needs kWrite.
  Status copy(const TuneJob &from, const TuneJob &to, const std::string &device);

private:
  std::shared_ptr<KernelCache> cache;
};

} // namespace nsa
