// What `nsa tune` makes for people from the JSON reports of a tuning: the table of a kernel, and one HTML file with
// plots for workloads. Thread-safety: tune_report.h has only pure functions.
#pragma once

#include "tools/report/plot.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// Formats the tuner's report of one kernel. The candidates are ordered by their measured times, the fastest first.
// After the measured candidates, the returned table lists the candidates without a time, and says how many candidates
// were never tried.
std::string tuneTable(const nlohmann::json &report);

// Makes the HTML file from the report of tuned workloads.
std::string tuneHtml(const nlohmann::ordered_json &report);

struct TunePlots {
  std::vector<report::Plot> roofline; // one for each type that has a roof
  std::vector<report::Plot> times;    // one for each part of a call that has lengths to show
};
// The plots for the kernels of one device.
TunePlots tunePlots(const nlohmann::ordered_json &report, const std::string &device);

// Returns the text in the field `name` of a report, or "" if the report lacks this field.
inline std::string fieldText(const nlohmann::ordered_json &object, const char *name) { return object.value(name, ""); }

} // namespace nsa::tools
