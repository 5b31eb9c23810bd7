// Twin of templates/device/ptx_convert.cuh.
#pragma once

#include "runtime/base/half.h"
#include "simulator.h"
#include "types.cuh"

namespace nsa {

inline float to_float(float value) { return value; }
inline float to_float(bf16 value) { return bf16ToFloat(value.bits); }
inline float to_float(f16 value) { return fp16ToFloat(value.bits); }

template <typename T> T to(float value);
template <> inline float to<float>(float value) { return value; }
template <> inline bf16 to<bf16>(float value) { return {floatToBf16(value)}; }
template <> inline f16 to<f16>(float value) { return {floatToFp16(value)}; }

inline uint32 pack_bf16(float low, float high) {
  return to<bf16>(low).bits | static_cast<uint32>(to<bf16>(high).bits) << 16;
}
inline uint32 pack_f16(float low, float high) {
  return to<f16>(low).bits | static_cast<uint32>(to<f16>(high).bits) << 16;
}

} // namespace nsa
