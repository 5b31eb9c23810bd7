// Counts the work of the calls that a tuning times, for the speeds in its report.
// Thread-safety: pure functions.
#pragma once

#include "autotune/workload/tune_jobs.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace nsa::tools {

// The call that a tuning measures, with its floating point operations and the bytes of its tensors.
struct TimedWork : TimedCall {
  double flops = 0, bytes = 0;
};
std::optional<TimedWork> timedWork(const TuneJob &job, bool isGpu);
// Adds the work to the object `timed` of a job's row in a report (TuneRunOptions::describeTimed).
void addTimedWork(const TuneJob &job, bool isGpu, nlohmann::ordered_json &timed);

} // namespace nsa::tools
