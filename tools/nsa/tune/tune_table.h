// The table that `nsa tune --op` prints for a kernel.
// Thread-safety: tune_table.h has only pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

// Formats the tuner's report of one kernel. The candidates are ordered by their measured times, the fastest first.
// After the measured candidates, the returned table lists the candidates without a time, and says how many candidates
// were never tried.
std::string tuneTable(const nlohmann::json &report);

} // namespace nsa::tools
