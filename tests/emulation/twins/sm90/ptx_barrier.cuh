// Twin of what decode_step uses of templates/device/sm90/ptx_barrier.cuh.
#pragma once

#include "ptx_copy.cuh"
#include "types.cuh"

namespace nsa {

NSA_DEVICE void barrier_init(uint32 barrier, int32 arrivals) { emulator::initBarrier(barrier, arrivals); }
NSA_DEVICE void fence_barrier_init() {}
NSA_DEVICE void barrier_arrive_expect(uint32 barrier, int32 bytes) { emulator::arriveExpect(barrier, bytes); }
NSA_DEVICE void barrier_arrive(uint32 barrier) { emulator::arrive(barrier, false); }
NSA_DEVICE void barrier_arrive_copies(uint32 barrier) { emulator::arrive(barrier, true); }
NSA_DEVICE void barrier_wait(uint32 barrier, int32 parity) { emulator::waitBarrier(barrier, parity); }
NSA_DEVICE void named_barrier_sync(int32 name, int32 threads) {
  emulator::meetBlock("a named barrier", name, threads, false);
}
NSA_DEVICE void named_barrier_arrive(int32 name, int32 threads) {
  emulator::arriveBlock("a named barrier", name, threads);
}
NSA_DEVICE bool named_barrier_any(int32 name, int32 threads, bool condition) {
  return emulator::meetBlock("a named barrier with a condition", name, threads, condition);
}

} // namespace nsa
