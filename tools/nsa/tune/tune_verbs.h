// The work of `nsa tune WORKLOAD`. tune_command.cpp reads the command line.
// Thread-safety: one thread.
#pragma once

#include "autotune/workload/workload.h"
#include "tools/nsa/command/command.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

struct WorkloadFlags {
  std::vector<std::string> workloads; // files, names of ready-made workloads, or "all" for all of these
  std::vector<std::string> targets;   // of --target
  std::vector<std::string> operators; // only their kernels; empty: all
  TuneDirection direction = TuneDirection::kForward;
  double budgetSeconds = 0;
  bool list = false, again = false, dryRun = false, compileOnly = false;
  std::optional<std::string> json; // a file; "" for stdout
  std::string reportPath;
  EngineSettings engine; // its device may name several, separated by commas
};
Ending tuneWorkloads(const WorkloadFlags &flags);
// Prints the ready-made workloads, one in a line.
Status listWorkloads();
// Returns one line for each file of a run, with the path of the database or of a report: "Database:
// /home/me/.cache/nsa/kernels.db". If the user did not ask for a report, its path is "".
std::string placesText(const std::string &database, const std::string &json, const std::string &html);

} // namespace nsa::tools
