// Tunes the kernels that workloads ask for, on one or several devices of this machine. A tuning run continues where an
// earlier run stopped.
// Thread-safety: one thread; it starts one thread for each device.
#pragma once

#include "tools/nsa/tune/stored_choices.h"
#include "tools/nsa/tune/tune_jobs.h"
#include "tools/support/engine.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nsa::tools {

struct TuneRunOptions {
  // "cpu", "cuda:0". If `devices` has a single empty text, the engine chooses the device.
  std::vector<std::string> devices;
  EngineSettings engine;                              // its device does not count
  double budgetSeconds = 0;                           // for everything together; 0: no limit
  bool again = false;                                 // tunes also what is stored already
  std::function<void(const std::string &line)> print; // receives a line for each kernel that is done; may be empty
  bool showsProgress = true;                          // shows a line on a terminal's stderr
  bool measuresRoofs = false;                         // measures the peak rates of the processor for the report
};

// Returns the report as JSON, with the fields that docs/tuning.md describes. The report also lists the kernels that
// could not be tuned. The result is an error only when no tuning could begin. After SIGINT the run ends early, and the
// report lists the kernels that were tuned until then.
Result<nlohmann::ordered_json> runWorkloads(const std::vector<Workload> &workloads, const TuneRunOptions &options);

// The settings that the engine will use, and the revision of its compiler.
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
