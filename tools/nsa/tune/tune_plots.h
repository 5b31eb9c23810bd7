// Makes the plots of a tuning report.
// Thread-safety: tune_plots.h has only pure functions.
#pragma once

#include "tools/report/plot.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

// Returns the text in the field `name` of a report, or "" if the report lacks this field.
inline std::string fieldText(const nlohmann::ordered_json &object, const char *name) { return object.value(name, ""); }

struct TunePlots {
  std::vector<report::Plot> roofline; // one for each type that has a roof
  std::vector<report::Plot> times;    // one for each part of a call that has lengths to show
};
// The plots for the kernels of one device.
TunePlots tunePlots(const nlohmann::ordered_json &report, const std::string &device);

} // namespace nsa::tools
