// Finds the device name of a choice whose kernel was compiled for an architecture on a machine without such a device.
// Thread-safety: a pure function of the template folder.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa::tools {

// Returns the device name under which the choice is stored. For "cpu" this is the name of a processor with
// `cpuFeatures`, and such a processor finds these kernels as its own choices; "" means the features of this processor.
// For a GPU architecture this is the name of the architecture, whose choices a GPU of that architecture uses when it
// has none of its own.
Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures);

} // namespace nsa::tools
