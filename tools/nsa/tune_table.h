// The table that `nsa tune --op` prints for a kernel.
// Thread-safety: tune_table.h has only pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

// Formats the tuner's report of one kernel. The candidates are ordered by their measured times, the fastest first.
// Behind the measured candidates come the candidates without a time, and the number of candidates that were never
// tried.
std::string tuneTable(const nlohmann::json &report);

} // namespace nsa::tools
