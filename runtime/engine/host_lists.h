// Finds the entry of a block list that a kernel refused, in memory that the host can read.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call.h"

namespace nsa {

// Returns a device error with place and value of the first entry that breaks the rule of block lists, or ok when all
// entries keep the rule. The lengths of `call` must have passed checkHostLengths.
Status findMalformedList(const CallRules &rules, const Call &call);

} // namespace nsa
