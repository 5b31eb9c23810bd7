// Twin of templates/device/sm90/ptx_push.cuh.
#pragma once

#include "types.cuh"

namespace nsa {

NSA_DEVICE void push_word(uint32 address, uint32 value, uint32 barrier) { emulator::push(address, &value, 4, barrier); }
NSA_DEVICE void push_words(uint32 address, uint32 low, uint32 high, uint32 barrier) {
  const uint32 words[2] = {low, high};
  emulator::push(address, words, 8, barrier);
}
NSA_DEVICE void push_quad(uint32 address, const float (&values)[4], uint32 barrier) {
  emulator::push(address, values, 16, barrier);
}
NSA_DEVICE void cluster_arrive_relaxed() { emulator::arriveCluster(); }

} // namespace nsa
