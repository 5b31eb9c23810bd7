// Twin of templates/device/ptx_warp.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

inline constexpr uint32 kAllLanes = 0xffffffffu;

template <typename T> struct Exchanged {
  T value;
  int32 lane;
  T result;
};

template <typename T> NSA_DEVICE T shuffle(T value, int32 lane) {
  Exchanged<T> mine{value, lane & 31, {}};
  emulator::performTogether("shfl", &mine, [](void **lanes) {
    for (int32 i = 0; i < kWarpSize; ++i) {
      auto *of = static_cast<Exchanged<T> *>(lanes[i]);
      of->result = static_cast<Exchanged<T> *>(lanes[of->lane])->value;
    }
  });
  return mine.result;
}

template <typename T> NSA_DEVICE T shuffle_xor(T value, int32 mask) {
  return shuffle(value, static_cast<int32>(threadIdx.x) % kWarpSize ^ mask);
}

NSA_DEVICE uint32 vote(const char *operation, bool condition) {
  Exchanged<uint32> mine{condition, 0, 0};
  emulator::performTogether(operation, &mine, [](void **lanes) {
    uint32 votes = 0;
    for (int32 i = 0; i < kWarpSize; ++i)
      votes |= static_cast<Exchanged<uint32> *>(lanes[i])->value << i;
    for (int32 i = 0; i < kWarpSize; ++i)
      static_cast<Exchanged<uint32> *>(lanes[i])->result = votes;
  });
  return mine.result;
}
NSA_DEVICE uint32 ballot(bool condition) { return vote("vote.ballot", condition); }
NSA_DEVICE int32 count_bits(uint32 bits) { return __builtin_popcount(bits); }
NSA_DEVICE bool any_lane(bool condition) { return vote("vote.any", condition) != 0; }

NSA_DEVICE bool any_thread(bool condition) { return emulator::meetBlock("__syncthreads_or", 0, 0, condition); }

} // namespace nsa
