// Finds the device name under which the choice of a kernel is stored that `nsa tune --compile-only` compiles. The
// machine that compiles needs no device of the target architecture.
// Thread-safety: a pure function of the template folder.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa::tools {

// Returns the device name under which the choice is stored. For the target "cpu" the device name is the name
// of any processor with the vector instructions `cpuFeatures` ("" means the instructions of this processor), and
// such a processor finds the choice under its own device name. For a GPU architecture the device name is the name of
// the architecture. A GPU of the architecture uses this choice when none is stored for its own device model.
Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures);

} // namespace nsa::tools
