// The status word that kernels set when lengths in device memory break a rule (spec.md 2): two int32,
// {code, place}. The first reporter wins; a bad sequence writes nothing. Templates name the codes by
// number (`tile.report`), so numbers never change meaning.
// Thread-safety: pure functions.
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
  kBlocksOverTensor = 7, // k_comp, v_comp: more compressed blocks than rows
};

inline constexpr int kDeviceStatusWords = 2; // code, place (number of the sequence)

// Ok for code 0; else a device error that names the field, the sequence and the rule.
Status deviceStatus(int32_t code, int32_t place);

} // namespace nsa
