// Exchange between the lanes of a warp, and between the threads of a block. All lanes, or all threads, call these
// functions together.
#pragma once

#include "types.cuh"

namespace nsa {

inline constexpr uint32 kAllLanes = 0xffffffffu;

template <typename T> NSA_DEVICE T shuffle(T value, int32 lane) { return __shfl_sync(kAllLanes, value, lane); }

template <typename T> NSA_DEVICE T shuffle_xor(T value, int32 mask) { return __shfl_xor_sync(kAllLanes, value, mask); }

NSA_DEVICE bool any_lane(bool condition) { return __any_sync(kAllLanes, condition) != 0; }

// Bit i of the result is the condition of lane i.
NSA_DEVICE uint32 ballot(bool condition) { return __ballot_sync(kAllLanes, condition); }

// Whether the condition holds in any thread of the block. It is also a barrier of the block.
NSA_DEVICE bool any_thread(bool condition) { return __syncthreads_or(condition) != 0; }

} // namespace nsa
