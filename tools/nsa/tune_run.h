// Tunes what workloads ask for on one or several devices of this machine, from where an earlier run stopped.
// Thread-safety: one thread; it starts one for each device.
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
  std::vector<std::string> devices;                   // "cpu", "cuda:0"; one empty one: what the engine chooses
  EngineSettings engine;                              // but for the device
  double budgetSeconds = 0;                           // of everything together; 0: none
  bool again = false;                                 // also what is stored already
  std::function<void(const std::string &line)> print; // a line for each kernel that is done; may be empty
  bool showsProgress = true;                          // a line on a terminal's stderr
  bool measuresRoofs = false;                         // what the processor can do at most, for the report
};

// What the run did, the report of docs/tuning.md: a JSON document. Kernels that failed are in it; an error means that
// nothing could begin. Ends early, with what there is, after SIGINT.
Result<nlohmann::ordered_json> runWorkloads(const std::vector<Workload> &workloads, const TuneRunOptions &options);

// Settings as the engine will see them, and the compiler's revision that it will use.
struct TuneEnvironment {
  std::string revision, templateDir, cpuFeatures;
  CacheSettings cache;
  Logger logger;
  int compileThreads = 0;
  double kernelSeconds = 0; // a kernel's tuning takes at most
  bool exhaustive = false;
};
Result<TuneEnvironment> tuneEnvironment(const EngineSettings &settings);

} // namespace nsa::tools
