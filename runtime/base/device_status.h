// The status word that kernels set when lengths or lists in device memory break a rule (docs/specification.md 2): two
// int32, {code, place}. The first reporter wins; a bad sequence writes nothing, a bad list attends nothing. Templates
// name the codes by number (`tile.report`), so numbers never change meaning. Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>

namespace nsa {

enum class DeviceStatusCode : int32_t {
  kOk = 0,
  kBadCuSeqlensQ = 1, // not from 0, decreasing, or out of [0, total_q]
  kBadCuSeqlensK = 2, // not from 0, decreasing, or out of [0, total_k]
  kMoreQueriesThanKeys = 3,
  kSeqlenQOverMaximum = 4,
  kSeqlenKOverMaximum = 5,
  kMalformedList = 6,    // block_list: not ascending, no block of the sequence, or a block after -1
  kBlocksOverTensor = 7, // k_comp, v_comp: more compressed blocks than rows
  kBadCacheSeqlens = 8,  // negative, or more than the cache has room for
  kCacheFull = 9,        // no room for the new tokens
  kBadPage = 10,         // block_table: a page that the pools do not have
};

inline constexpr const char *kBlockListRule =
    "must be ascending block numbers of the sequence, each once, with -1 behind the last one only";
inline constexpr const char *kMalformedListHint =
    "a query whose list breaks the rule attended nothing: its output is 0";
inline constexpr int kDeviceStatusWords = 2; // code, place (number of the sequence)

// Ok for code 0; else a device error that names the field, the sequence and the rule.
Status deviceStatus(int32_t code, int32_t place);

} // namespace nsa
