// The status word that kernels set when sequence lengths or block lists in device memory break a rule
// (docs/specification.md 2). A status word is two int32: {code, place}, where `place` is the number of the sequence.
// The first report stays in the status word; later reports are lost until the host clears the word. A kernel writes
// nothing for a sequence whose lengths break a rule, and writes 0 as the output of a query whose block list breaks a
// rule. Stored kernels contain the codes as plain numbers, so the number of a code must never change.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <string_view>

namespace nsa {

enum class DeviceStatusCode : int32_t {
  kOk = 0,
  kBadCuSeqlensQ = 1, // the first offset is not 0, offsets decrease, or one is outside of [0, total_q]
  kBadCuSeqlensK = 2, // the first offset is not 0, offsets decrease, or one is outside of [0, total_k]
  kMoreQueriesThanKeys = 3,
  kSeqlenQOverMaximum = 4,
  kSeqlenKOverMaximum = 5,
  kMalformedList = 6,    // block_list: not ascending, not a block of the sequence, or a block after -1
  kBlocksOverTensor = 7, // k_comp, v_comp: the sequences have more compressed blocks than the tensor has rows
  kBadCacheSeqlens = 8,  // a length is negative, or more than the cache has room for
  kCacheFull = 9,        // the cache has no room for the new tokens
  kBadPage = 10,         // block_table: the number of a page that the pools do not have
  kBadKOffset = 11,      // beyond +-2^30 tokens or, where keys are compressed blocks, no multiple of cmp_stride
  kWrongIndex = 12,      // block_index: not the inverse of block_list
};

inline constexpr const char *kBlockListRule =
    "must be ascending block numbers of the sequence, each once, with -1 behind the last one only";
inline constexpr const char *kMalformedListHint =
    "a query whose list breaks the rule attended nothing: its output is 0, and it adds nothing to gradients";
inline constexpr const char *kWrongIndexHint = "the gradients of queries, keys and values are undefined";
inline constexpr int kDeviceStatusWords = 2; // the code and the number of the sequence

// What a status word holds.
struct DeviceReport {
  int32_t code = 0; // 0: nothing was reported
  int32_t place = 0;
};

// Finds the code that templates call `status_` and `name` (kernel_constants.h).
bool findDeviceStatusCode(std::string_view name, int64_t &code);
// Returns the name of a code as templates say it, or "" for a number that is none of the codes.
std::string_view deviceStatusName(int32_t code);

// Returns ok for code 0. Every other code gives a device error that names the field, the sequence and the rule.
Status deviceStatus(DeviceReport report);

} // namespace nsa
