// Block lists in memory that the host can read: which entry a kernel has refused.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call.h"

namespace nsa {

// The first entry of a call of `sel` that breaks the lists' rule, by place and value, as a device error. Ok: none does.
// The call's lengths have passed checkHostLengths.
Status findMalformedList(const CallRules &rules, const Call &call);

} // namespace nsa
