// Opens the devices that a tuning of workloads uses, and collects for its report the facts about them and the work of
// the calls that it times.
// Thread-safety: one thread.
#pragma once

#include "autotune/workload/tune_plan.h"
#include "tools/support/engine.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

// The options that the engine of these settings will use.
Result<EngineOptions> resolvedOptions(const EngineSettings &settings);

// A device that works, and its engine.
struct OpenDevice {
  std::string name; // "cuda:1"
  EngineHandle engine;
  nlohmann::json facts; // bench::machineFacts

  std::string key() const { return facts["device"].value("choice_key", ""); }
  bool isGpu() const { return facts["device"].value("kind", "") == "gpu"; }
  bool runsStep() const { return targetRunsStep(facts["device"].value("target", "")); }
};
// Opens the devices of a list such as "cuda:0,cuda:1". The engine chooses the device of an empty list. The settings
// hold for all engines, but for the device and the threads that compile, which the engines share.
Result<std::vector<OpenDevice>> openDevices(const std::string &list, EngineSettings settings);
// `devices` must outlive the tuning.
std::vector<TuneDevice> tuneDevices(const std::vector<OpenDevice> &devices);

// Adds to the report of a tuning what it does not know of the machine: the date, the versions, the processor, and for
// each device its facts. The peak rates of a processor are measured if `measuresRoofs` is set.
void addMachine(nlohmann::ordered_json &report, const std::vector<OpenDevice> &devices, bool measuresRoofs);

// The call that a tuning measures, with its floating point operations and the bytes of its tensors.
struct TimedWork : TimedCall {
  double flops = 0, bytes = 0;
};
std::optional<TimedWork> timedWork(const TuneJob &job, bool isGpu);
// Adds the work to the object `timed` of a job's row in a report (TuneRunOptions::describeTimed).
void addTimedWork(const TuneJob &job, bool isGpu, nlohmann::ordered_json &timed);

} // namespace nsa::tools
