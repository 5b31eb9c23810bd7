// Exchange between the lanes of a warp, and between the threads of a block. All lanes of the warp, or all threads of
// the block, call a function of ptx_warp.cuh together.
#pragma once

#include "types.cuh"

namespace nsa {

inline constexpr uint32 kAllLanes = 0xffffffffu;

// Returns the value of lane `lane`.
template <typename T> NSA_DEVICE T shuffle(T value, int32 lane) {
  if constexpr (kIsHalf<T>)
    return {static_cast<uint16>(__shfl_sync(kAllLanes, static_cast<uint32>(value.bits), lane))};
  else
    return __shfl_sync(kAllLanes, value, lane);
}

template <typename T> NSA_DEVICE T shuffle_xor(T value, int32 mask) { return __shfl_xor_sync(kAllLanes, value, mask); }

NSA_DEVICE bool any_lane(bool condition) { return __any_sync(kAllLanes, condition) != 0; }

// Bit i of the result of ballot() is the condition of lane i.
NSA_DEVICE uint32 ballot(bool condition) { return __ballot_sync(kAllLanes, condition); }

// Returns how many bits of `bits` are 1.
NSA_DEVICE int32 count_bits(uint32 bits) { return __popc(bits); }

// Returns whether the condition holds in any thread of the block. any_thread is also a barrier of the block.
NSA_DEVICE bool any_thread(bool condition) { return __syncthreads_or(condition) != 0; }

} // namespace nsa
