// `nsa tune WORKLOAD`, below the verb that reads the command line.
// Thread-safety: one thread.
#pragma once

#include "tools/nsa/command.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

struct WorkloadFlags {
  std::vector<std::string> workloads; // files, names of ready-made ones, or all of these
  std::vector<std::string> targets;   // of --target
  std::vector<std::string> operators; // whose kernels alone; none: all
  double budgetSeconds = 0;
  bool list = false, again = false, dryRun = false, compileOnly = false;
  std::optional<std::string> json; // a file, "" for stdout
  std::string reportPath;
  EngineSettings engine; // its device may be several, separated by commas
};
Status tuneWorkloads(const WorkloadFlags &flags);
// The ready-made workloads, one a line.
Status listWorkloads();

} // namespace nsa::tools
