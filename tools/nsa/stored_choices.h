// What a kernel database holds of a workload already; as if empty where there is no database.
// Thread-safety: all functions may be called by many threads at once.
#pragma once

#include "cache/kernel_store.h"
#include "tools/nsa/tune_jobs.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

// The compiler's revision that a choice says it was made by, or its kernels measured where they were: compiling the
// winner again changes nothing about that. "" when it says none.
std::string revisionOf(const StoredChoice &choice);
// The winner of a tuning was measured, unless the budget ended before.
bool wasMeasured(const StoredChoice &choice);

class StoredChoices {
public:
  enum class Access { kRead, kWrite };
  static Result<StoredChoices> open(const std::string &cachePath, Access access = Access::kRead);

  // The job's choice on the device, when a run has nothing left to do for it: measured where there is something to
  // choose, by this revision of the compiler, with its kernel intact.
  std::optional<StoredChoice> find(const TuneJob &job, const std::string &device, const std::string &revision);
  // Devices that have choices with kernels for this architecture.
  std::vector<std::string> devicesOf(const std::string &target);

  // Thresholds that were measured on the device.
  std::vector<StoredRoute> routesOf(const std::string &device);
  // Gives `to` the choice that `from`, of the same family and without choices of its own, has: one kernel serves both.
  // Needs a database that was opened to write.
  Status copy(const TuneJob &from, const TuneJob &to, const std::string &device);

private:
  explicit StoredChoices(std::unique_ptr<KernelStore> store) : store(std::move(store)) {}

  std::unique_ptr<KernelStore> store;
};

} // namespace nsa::tools
