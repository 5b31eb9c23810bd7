// Barriers in shared memory that count arrivals and bytes (PTX ISA, "mbarrier"; sm_90), and the block's numbered
// barriers ("barrier"). An mbarrier passes through phases; `parity` is that of the phase to wait for, 0 for the first.
// Addresses are of the shared window (shared_address).
#pragma once

#include "ptx_copy.cuh"

namespace nsa {

// One thread makes it; fence_barrier_init and a barrier of the block or cluster come before its use.
NSA_DEVICE void barrier_init(uint32 barrier, int32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the cluster and to the copy engine.
NSA_DEVICE void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"); }

NSA_DEVICE void barrier_arrive(uint32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}

// At the barrier of another block of the cluster, or the own one: `barrier` comes from cluster_address. It orders what
// this block sees alone: enough to say that a place was read, whose values have arrived. A release to the cluster would
// wait for all that the thread has under way in global memory (MEMBAR.ALL.GPU), 0.6 us each.
NSA_DEVICE void barrier_arrive_cluster(uint32 barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" : : "r"(barrier) : "memory");
}

// Arrives, and has the phase wait for this many more bytes from the copy engine.
NSA_DEVICE void barrier_arrive_expect(uint32 barrier, int32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}

// Whether the phase is over; it may sleep for a while before it says no.
NSA_DEVICE bool barrier_try_wait(uint32 barrier, int32 parity) {
  uint32 done;
  asm volatile("{\n"
               ".reg .pred done;\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
               "selp.b32 %0, 1, 0, done;\n"
               "}"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}

NSA_DEVICE void barrier_wait(uint32 barrier, int32 parity) {
  while (!barrier_try_wait(barrier, parity)) {
  }
}

// Numbered barriers, 0 to 15 (0 is that of __syncthreads): `threads` counts those that wait and those that only
// arrive, a multiple of the warp's.
NSA_DEVICE void named_barrier_sync(int32 name, int32 threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" : : "r"(name), "r"(threads) : "memory");
}

NSA_DEVICE void named_barrier_arrive(int32 name, int32 threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" : : "r"(name), "r"(threads) : "memory");
}

} // namespace nsa
