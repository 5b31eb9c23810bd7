// The rules of lengths that kernels check in device memory, for tensors that the host can read: what breaks one is
// named with its place. Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call.h"

namespace nsa {

// Lengths of packed sequences, and of decode's cache with the pages that its new tokens go to.
Status checkHostLengths(const CallRules &rules, const Call &call);
// batch + 1 offsets in host memory: from 0, never falling, at most `total`, which is called `totalName`.
Status checkHostOffsets(const char *name, const ViewSlots &view, int64_t batch, int64_t total, const char *totalName);

} // namespace nsa
