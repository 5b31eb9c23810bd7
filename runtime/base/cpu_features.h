// The x86-64 feature levels that CPU kernels are generated for. The runtime's device key and the
// compiler's target use the same names, so a stored kernel never meets a processor that lacks them.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <string_view>

namespace nsa {

// The highest of "x86-64-v4", "x86-64-v3" that this processor has; "" when it has neither.
std::string_view hostCpuFeatures();

// 32-bit lanes of a vector register at a level (16 or 8). An error for any other name.
Result<int> cpuVectorLanes(std::string_view features);

} // namespace nsa
