// Tunes what workloads ask for, on one or several devices of this machine. A tuning run continues where an earlier run
// stopped. Thread-safety: one thread; it starts one for each device.
#pragma once

#include "tools/nsa/stored_choices.h"
#include "tools/nsa/tune_jobs.h"
#include "tools/support/engine.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

struct TuneRunOptions {
  // "cpu", "cuda:0". A single empty text means the device that the engine chooses.
  std::vector<std::string> devices;
  EngineSettings engine;                              // its device does not count
  double budgetSeconds = 0;                           // for everything together; 0: no limit
  bool again = false;                                 // tunes also what is stored already
  std::function<void(const std::string &line)> print; // receives a line for each kernel that is done; may be empty
  bool showsProgress = true;                          // shows a line on a terminal's stderr
  bool measuresRoofs = false;                         // measures the peak rates of the processor for the report
};

// Returns the report of docs/tuning.md as JSON. The report contains kernels that failed. The result is an error only
// when no tuning could begin. After SIGINT the run ends early, and the report has what was done.
Result<nlohmann::ordered_json> runWorkloads(const std::vector<Workload> &workloads, const TuneRunOptions &options);

// The settings as the engine will see them, and the revision of the compiler that it will use.
struct TuneEnvironment {
  std::string revision, templateDir, cpuFeatures;
  CacheSettings cache;
  Logger logger;
  int compileThreads = 0;
  double kernelSeconds = 0; // the limit for tuning one kernel
  bool exhaustive = false;
};
Result<TuneEnvironment> tuneEnvironment(const EngineSettings &settings);

} // namespace nsa::tools
