// After a kernel has reported a bad block list, finds the bad entry in host memory.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call/call.h"

namespace nsa {

// Returns a device error with the index and the value of the first entry that breaks the rule of block lists, or ok if
// no entry breaks it. The lengths of `call` must have passed checkHostLengths.
Status findMalformedList(const CallRules &rules, const Call &call);

} // namespace nsa
