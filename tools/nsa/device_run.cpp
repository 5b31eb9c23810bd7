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
  Result<EngineHandle> engine = createEngine(settings);
  if (!engine)
    return engine.status();
  Result<std::string> device = deviceName(engine->get());
  if (!device)
    return device.status();
  Result<std::unique_ptr<Accelerator>> accelerator = Accelerator::open(*device);
  if (!accelerator)
    return accelerator.status();
  Result<PlanHandle> plan = createPlan(engine->get(), inputs.spec, inputs.maxima, (*accelerator)->stream());
  if (!plan)
    return plan.status();
  Result<RunResult> result = runOnce(**accelerator, plan->get(), inputs, wanted);
  if (!result)
    return result.status();
  return DeviceRun{describePlan(plan->get()), std::move(*result), isCompilerMapped()};
}

} // namespace nsa::tools
