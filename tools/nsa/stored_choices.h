// What the kernel database and the packs beneath it hold of a workload already, as an engine would find it; as if empty
// where there are none.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "runtime/engine/kernel_cache.h"
#include "tools/nsa/tune_jobs.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nsa::tools {

// The compiler's revision that a choice says it was made by, or its kernels measured where they were: compiling the
// winner again changes nothing about that. "" when it says none.
std::string revisionOf(const StoredChoice &choice);
// In a search that left nobody out.
bool wasExhaustive(const StoredChoice &choice);

// What a stored choice has to be, for a run to have nothing left to do for its kernel.
struct StoredRules {
  std::string revision; // of the compiler
  bool exhaustive = false;
};

class StoredChoices {
public:
  // kRead makes no file; kWrite is for who writes into it anyway.
  enum class Access { kRead, kWrite };
  // `logger`: told of files that cannot be used, as an engine's is.
  StoredChoices(const CacheSettings &settings, Access access, Logger logger);

  // The job's choice on the device, when a run has nothing left to do for it: measured where there is something to
  // choose, by this revision of the compiler, with its kernel intact, in the database or a pack.
  std::optional<StoredChoice> find(const TuneJob &job, const std::string &device, const StoredRules &rules);
  // Devices that have choices with kernels for this architecture, of the operators of these jobs.
  std::set<std::string> devicesOf(const std::string &target, const std::vector<TuneJob> &jobs);
  // A threshold that was measured on the device.
  std::optional<StoredRoute> routeOf(const std::string &family, const std::string &device, const std::string &name);

  // The steps of a call as thresholds that were measured on these devices have them (runtime/engine/routes.h), where
  // they are other ones.
  std::vector<Step> routedSteps(const Spec &spec, const Maxima &maxima, const std::vector<std::string> &devices);
  // Needs kWrite.
  Status put(const StoredRoute &route) { return cache->putRoute(route); }
  // Gives `to` the choice that `from`, of the same family and without choices of its own, has: one kernel serves both.
  // Needs kWrite.
  Status copy(const TuneJob &from, const TuneJob &to, const std::string &device);

private:
  std::optional<KernelCache::Hit> hit(const TuneJob &job, const std::string &device);

  Access access;
  std::unique_ptr<KernelCache> cache;
};

} // namespace nsa::tools
