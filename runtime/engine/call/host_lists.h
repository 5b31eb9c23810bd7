// Looks for the place in host memory where a kernel found block lists or their inverse wrong. A kernel on the CPU
// reports only the sequence. Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/engine/call/call.h"

namespace nsa {

// Each returns a device error with the index and the value of the first entry that breaks the rule, or ok if no entry
// breaks it. The lengths of `call` must have passed checkHostLengths.
//
// The rule of block lists: the blocks of the sequence in ascending order, and behind them -1.
Status findMalformedList(const CallRules &rules, const Call &call);
// BLOCK_INDEX, which the call must bind, is the inverse of BLOCK_LIST, in which malformed lists count as empty.
Status findWrongIndex(const CallRules &rules, const Call &call);

} // namespace nsa
