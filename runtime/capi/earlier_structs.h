// The structs of hosts whose nsa.h is of 0.1 or 0.2, where they are more than the beginning of today's structs.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/include/nsa/nsa.h"

#include <cstddef>

namespace nsa::capi {

inline constexpr size_t kOptionsBytesOf02 = 240, kSpecBytesOf02 = 128, kTensorBytesOf02 = 104, kPartTimeBytesOf02 = 40;

// Their levels of the log begin with 0, so that an unset level is the lowest. Their default miss policy is 0 too, and
// counts where the field miss_policy_set, which is `unused` in later headers, is 1.
inline bool isEarlier(const nsa_engine_options &options) { return options.size <= kOptionsBytesOf02; }
// In nsa.h of 0.1, nsa_engine_options has no field record_path, and the later fields lie eight bytes before their
// present place. No other nsa.h has a smaller nsa_engine_options than 0.2.
inline bool isOf01(const nsa_engine_options &options) { return options.size < kOptionsBytesOf02; }

// Gives the options of an earlier host the places and the values of this header. The reserved numbers of 0.1 lie where
// later headers have fields, so copyEarlier checks them itself.
Status copyEarlier(const nsa_engine_options &host, nsa_engine_options &storage);

} // namespace nsa::capi
