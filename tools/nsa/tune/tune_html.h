// Makes one HTML file for people from the JSON report of a tuned workload.
// Thread-safety: tune_html.h has only pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nsa::tools {

std::string tuneHtml(const nlohmann::ordered_json &report);

} // namespace nsa::tools
