// What `nsa tune --op` prints of a kernel's tuning.
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

// The tuner's report of one kernel as text: what was done, the candidates by their measured times, the fastest first,
// then those without a time, and how many were never tried.
std::string tuneTable(const nlohmann::json &report);

} // namespace nsa::tools
