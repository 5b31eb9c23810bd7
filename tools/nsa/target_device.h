// Names the device under which kernels are stored that were compiled for an architecture, without a device.
// Thread-safety: a pure function of the template folder.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa::tools {

// Returns the device's name in the store. For "cpu" the device's name is the name of a processor with `cpuFeatures`,
// which takes these kernels as its own choices; "" means the features of this processor. For a GPU architecture the
// device's name is the name of the architecture, to which the models of the architecture fall back.
Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures);

} // namespace nsa::tools
