// Twin of templates/device/ptx_convert.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE float to_float(float value) { return value; }
NSA_DEVICE float to_float(bf16 value) { return ::nsa::bf16ToFloat(value.bits); }
NSA_DEVICE float to_float(f16 value) { return ::nsa::fp16ToFloat(value.bits); }

template <typename T> NSA_DEVICE T to(float value) {
  if constexpr (kSameType<T, float>)
    return value;
  else if constexpr (kSameType<T, bf16>)
    return {::nsa::floatToBf16(value)};
  else
    return {::nsa::floatToFp16(value)};
}

NSA_DEVICE uint32 pack_bf16(float low, float high) {
  return to<bf16>(low).bits | static_cast<uint32>(to<bf16>(high).bits) << 16;
}
NSA_DEVICE uint32 pack_f16(float low, float high) {
  return to<f16>(low).bits | static_cast<uint32>(to<f16>(high).bits) << 16;
}

} // namespace nsa
