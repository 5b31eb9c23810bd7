// Finds what the kernel database and the packs already have of a workload, as an engine would find it. Without files it
// finds nothing.
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

// The revision of the compiler that made a choice. For a measured choice it is the revision whose kernels were
// measured, and compiling the winner again does not change it. The revision is "" if the choice does not say it.
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
  // With kRead, opening makes no file. With kWrite, opening makes the file, for programs that write into it anyway.
  enum class Access { kRead, kWrite };
  // `logger` receives messages about files that cannot be used, as an engine's does.
  StoredChoices(const CacheSettings &settings, Access access, Logger logger);

  // The choice for the job on the device, when a run need not tune its kernel again. A usable choice must be measured
  // where there is something to choose, made by this revision of the compiler, and have an intact kernel, in the
  // database or a pack.
  std::optional<StoredChoice> find(const TuneJob &job, const std::string &device, const StoredRules &rules);
  // The devices that have choices with kernels for this architecture, of the operators of these jobs.
  std::set<std::string> devicesOf(const std::string &target, const std::vector<TuneJob> &jobs);
  // A threshold that was measured on the device.
  std::optional<StoredRoute> routeOf(const std::string &family, const std::string &device, const std::string &name);

  // The steps of a call by the thresholds that were measured on these devices (runtime/engine/routes.h), where these
  // differ from the steps without thresholds.
  std::vector<Step> routedSteps(const Spec &spec, const Maxima &maxima, const std::vector<std::string> &devices);
  // Needs kWrite.
  Status put(const StoredRoute &route) { return cache->putRoute(route); }
  // Gives `to` the choice of `from`, which has the same family and no choices of its own, so that one kernel serves
  // both. Needs kWrite.
  Status copy(const TuneJob &from, const TuneJob &to, const std::string &device);

private:
  std::optional<KernelCache::Hit> hit(const TuneJob &job, const std::string &device);

  Access access;
  std::unique_ptr<KernelCache> cache;
};

} // namespace nsa::tools
