// The device of kernels that were compiled for an architecture without one.
// Thread-safety: a pure function of the template folder.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace nsa::tools {

// Its name in the store: of "cpu" that of a processor with the features that are compiled for, whose own choices they
// are ("": this one's); of a GPU architecture the architecture's, which its models fall back to.
Result<std::string> targetDevice(const std::string &target, const std::string &templateDir,
                                 const std::string &cpuFeatures);

} // namespace nsa::tools
