// Finds the device name under which `nsa tune --compile-only` stores the kernels that it compiles. The machine that
// compiles needs no device of the target architecture.
// Thread-safety: targetDevice is a pure function of its arguments and of the files in the template folder.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa {

// Returns the device name under which kernels for `target` are stored. The device name of a GPU architecture is the
// name of the architecture. A GPU of this architecture uses the kernels that are stored under this name if none are
// stored for its own model. The target "cpu" stands for all processors with the vector instructions `cpuFeatures`,
// which share one device name. An empty text `cpuFeatures` means the instructions of this processor.
Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures);

} // namespace nsa
