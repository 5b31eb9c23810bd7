// Checks lengths that the host can read by the rules that kernels check in device memory. The error of a bad length
// names its place.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call.h"

namespace nsa {

// Checks the lengths of packed sequences, and the lengths of decode's cache with the pages that the new tokens go to.
Status checkHostLengths(const CallRules &rules, const Call &call);
// Checks batch + 1 offsets in host memory. The offsets must begin with 0, must not decrease, and must be at most
// `total`, which the error calls `totalName`.
Status checkHostOffsets(const char *name, const ViewSlots &view, int64_t batch, int64_t total, const char *totalName);

} // namespace nsa
