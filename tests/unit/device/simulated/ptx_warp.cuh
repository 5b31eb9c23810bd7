// Twin of templates/device/ptx_warp.cuh.
#pragma once

#include "simulator.h"
#include "types.cuh"

namespace nsa {

inline constexpr uint32 kAllLanes = 0xffffffffu;

template <typename T> T shuffle(T value, int32 lane) {
  struct Exchange {
    T value;
    int32 lane;
    T result;
  } mine{value, lane, {}};
  simulator::meetWarp("shfl", &mine, [](void *const *lanes) {
    for (int i = 0; i < simulator::kWarpSize; ++i) {
      auto *of = static_cast<Exchange *>(lanes[i]);
      of->result = static_cast<Exchange *>(lanes[of->lane % simulator::kWarpSize])->value;
    }
  });
  return mine.result;
}

template <typename T> T shuffle_xor(T value, int32 mask) {
  return shuffle(value, static_cast<int32>(threadIdx.x % 32) ^ mask);
}

inline bool any_lane(bool condition) {
  simulator::meetWarp("vote", &condition, [](void *const *lanes) {
    bool any = false;
    for (int i = 0; i < simulator::kWarpSize; ++i)
      any |= *static_cast<bool *>(lanes[i]);
    for (int i = 0; i < simulator::kWarpSize; ++i)
      *static_cast<bool *>(lanes[i]) = any;
  });
  return condition;
}

inline uint32 ballot(bool vote) {
  struct Ballot {
    bool vote;
    uint32 result;
  } mine{vote, 0};
  simulator::meetWarp("ballot", &mine, [](void *const *lanes) {
    uint32 result = 0;
    for (int i = 0; i < simulator::kWarpSize; ++i)
      result |= static_cast<uint32>(static_cast<Ballot *>(lanes[i])->vote) << i;
    for (int i = 0; i < simulator::kWarpSize; ++i)
      static_cast<Ballot *>(lanes[i])->result = result;
  });
  return mine.result;
}

inline bool any_thread(bool condition) {
  simulator::meetBlock("__syncthreads_or", &condition, [](const std::vector<void *> &threads) {
    bool any = false;
    for (void *thread : threads)
      any |= *static_cast<bool *>(thread);
    for (void *thread : threads)
      *static_cast<bool *>(thread) = any;
  });
  return condition;
}

} // namespace nsa
