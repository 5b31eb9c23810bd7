// Makes the report of a tuned workload for people: one HTML file from the JSON report.
// Thread-safety: tune_html.h has only pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

std::string tuneHtml(const nlohmann::ordered_json &report);

} // namespace nsa::tools
