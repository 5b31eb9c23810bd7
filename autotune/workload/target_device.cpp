#include "autotune/workload/target_device.h"

#include "runtime/base/cpu_features.h"
#include "runtime/engine/compile/template_folder.h"

namespace nsa {

Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures) {
  if (target != "cpu")
    return choiceDeviceOf(target, templateDir);
  // As the compiler chooses them.
  const std::string features = cpuFeatures.empty() ? std::string(hostCpuFeatures()) : cpuFeatures;
  if (features.empty())
    return Status::invalid("target", "cpu", "needs a processor with AVX2 and FMA",
                           "name what to compile for with NSA_CPU_FEATURES");
  return choiceDeviceOf("cpu " + features, templateDir);
}

} // namespace nsa
