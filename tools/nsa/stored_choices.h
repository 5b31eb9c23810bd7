// Finds the choices and kernels for a workload that the kernel database and the packs already contain, in the same way
// as an engine finds them. Without files it finds nothing.
// Thread-safety: many threads may call the functions of stored_choices.h at once.
#pragma once

#include "runtime/engine/kernel_cache.h"
#include "tools/nsa/tune_jobs.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa::tools {

// Returns the revision of the compiler with which a choice was made. A measured choice keeps the revision of the
// compiler whose kernels were measured, also when its winner is compiled again. The result is "" if the choice does not
// name a revision.
std::string revisionOf(const StoredChoice &choice);
// Returns whether the search behind a choice measured every candidate.
bool wasExhaustive(const StoredChoice &choice);

// The rules that a stored choice must fulfil, so that a run need not tune its kernel again.
struct StoredRules {
  std::string revision; // of the compiler
  bool exhaustive = false;
};

class StoredChoices {
public:
  // With kRead, no file is created. With kWrite, the database file is created. kWrite is for programs that will write
  // into the database.
  enum class Access { kRead, kWrite };
  // `logger` receives messages about files that cannot be used, like the logger of an engine.
  StoredChoices(const CacheSettings &settings, Access access, Logger logger);

  // Returns the stored choice for the job on the device, if it is good enough that a run need not tune the kernel
  // again. If the kernel has more than one candidate, a usable choice must be measured. A usable choice must be made by
  // the revision of the compiler that `rules` names, and its kernel must be undamaged in the database or a pack.
  std::optional<StoredChoice> find(const TuneJob &job, const std::string &device, const StoredRules &rules);
  // Returns the names of the devices for which a choice is stored that belongs to an operator of these jobs and whose
  // kernel was compiled for this architecture.
  std::set<std::string> devicesOf(const std::string &target, const std::vector<TuneJob> &jobs);
  // Returns a stored threshold that was measured on the device.
  std::optional<StoredRoute> routeOf(const std::string &family, const std::string &device, const std::string &name);

  // Returns the steps of a call when the thresholds measured on these devices apply (runtime/engine/routes.h), if these
  // steps differ from the steps without thresholds.
  std::vector<Step> routedSteps(const Spec &spec, const Maxima &maxima, const std::vector<std::string> &devices);
  // Needs kWrite.
  Status put(const StoredRoute &route) { return cache->putRoute(route); }
  // Stores the choice of the job `from` for the job `to` as well, so that both use one kernel. The jobs `from` and `to`
  // must have the same family, and their kernel must have no candidates to choose from. Needs kWrite.
  Status copy(const TuneJob &from, const TuneJob &to, const std::string &device);

private:
  std::optional<KernelCache::Hit> hit(const TuneJob &job, const std::string &device);

  Access access;
  std::unique_ptr<KernelCache> cache;
};

} // namespace nsa::tools
