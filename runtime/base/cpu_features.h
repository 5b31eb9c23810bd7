// The x86-64 feature levels that CPU kernels are generated for. The runtime's device key and the compiler's target use
// the same names, so a stored kernel never runs on a processor that lacks its instructions.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <string_view>

namespace nsa {

// Returns the higher of the levels "x86-64-v4" and "x86-64-v3" that this processor has; "" when it has neither.
std::string_view hostCpuFeatures();

// Returns how many 32-bit numbers a vector register holds at a feature level: 16 or 8. A name that is no feature level
// is an error.
Result<int> cpuVectorLanes(std::string_view features);

} // namespace nsa
