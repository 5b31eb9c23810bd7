// Runs one operator on the tensors of a file, on the device that an engine chooses. `run` and `dump-selection` share
// it.
// Thread-safety: one thread.
#pragma once

#include "tools/support/engine.h"
#include "tools/support/operator_job.h"

#include <nlohmann/json.hpp>
#include <set>

namespace nsa::tools {

struct DeviceRun {
  nlohmann::json plan; // nsa_plan_describe
  RunResult result;
  bool compilerMapped = false; // whether this process has opened the compiler
};
Result<DeviceRun> runOnDevice(const OperatorInputs &inputs, const EngineSettings &settings,
                              const std::set<TensorName> &wanted);

} // namespace nsa::tools
