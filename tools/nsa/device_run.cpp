#include "tools/nsa/device_run.h"

#include <fstream>
#include <memory>

namespace nsa::tools {
namespace {

// Read off the process's own memory map.
bool isCompilerMapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libnsa_compiler") != std::string::npos)
      return true;
  return false;
}

} // namespace

Result<DeviceRun> runOnDevice(const OperatorInputs &inputs, const EngineSettings &settings,
                              const std::set<TensorName> &wanted) {
  NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(settings));
  NSA_ASSIGN_OR_RETURN(std::string device, deviceName(engine.get()));
  NSA_ASSIGN_OR_RETURN(std::unique_ptr<Accelerator> accelerator, Accelerator::open(device));
  NSA_ASSIGN_OR_RETURN(PlanHandle plan, createPlan(engine.get(), inputs.spec, inputs.maxima, accelerator->stream()));
  NSA_ASSIGN_OR_RETURN(RunResult result, runOnce(*accelerator, plan.get(), inputs, wanted));
  return DeviceRun{describePlan(plan.get()), std::move(result), isCompilerMapped()};
}

} // namespace nsa::tools
