// Barriers in shared memory that count arrivals and bytes (PTX ISA, "mbarrier"; sm_90), and the numbered barriers of a
// block (PTX ISA, "barrier"). An mbarrier passes through phases. The argument `parity` is the parity of the mbarrier's
// phase to wait for; the first phase has parity 0. Addresses of barriers are addresses of the shared window
// (shared_address).
#pragma once

#include "ptx_copy.cuh"

namespace nsa {

// One thread initialises the barrier. Before other threads of the block use it, a barrier of these threads must follow.
// Before other blocks or the copy engine use it, fence_barrier_init must come in front of that barrier.
NSA_DEVICE void barrier_init(uint32 barrier, int32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the cluster and to the copy engine.
NSA_DEVICE void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"); }

NSA_DEVICE void barrier_arrive(uint32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}

// Arrives at an mbarrier when all copies that the thread has issued by cp_async_16 are complete. Other threads that
// wait for the mbarrier see what was copied.
NSA_DEVICE void barrier_arrive_copies(uint32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" : : "r"(barrier) : "memory");
}

// Arrives at an mbarrier of this block or of another block of the cluster, at an address from cluster_address.
// barrier_arrive_cluster has release semantics only at the scope of the thread's own block. Release semantics at block
// scope are enough to tell another block that this block has read a stage of a ring. An arrival with release semantics
// at cluster scope would wait until all global memory accesses of the thread have finished (MEMBAR.ALL.GPU), which
// takes 0.6 us each time.
NSA_DEVICE void barrier_arrive_cluster(uint32 barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" : : "r"(barrier) : "memory");
}

// Arrives at an mbarrier, and makes the current phase of the mbarrier wait for `bytes` more bytes from the copy engine
// or of messages.
NSA_DEVICE void barrier_arrive_expect(uint32 barrier, int32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}

// Returns whether the phase of parity `parity` of an mbarrier is over. The instruction mbarrier.try_wait may suspend
// the thread for a while before it returns false.
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

// Waits until the phase of parity `parity` of an mbarrier is over.
NSA_DEVICE void barrier_wait(uint32 barrier, int32 parity) {
  while (!barrier_try_wait(barrier, parity)) {
  }
}

// Numbered barriers, 0 to 15. Barrier 0 is the barrier of __syncthreads. The argument `threads` of a named barrier is
// the number of threads that wait plus the number of threads that only arrive; it is a multiple of 32.
NSA_DEVICE void named_barrier_sync(int32 name, int32 threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" : : "r"(name), "r"(threads) : "memory");
}

NSA_DEVICE void named_barrier_arrive(int32 name, int32 threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" : : "r"(name), "r"(threads) : "memory");
}

// named_barrier_sync that returns whether the condition holds in any of the threads. All threads of the barrier wait.
NSA_DEVICE bool named_barrier_any(int32 name, int32 threads, bool condition) {
  uint32 any;
  asm volatile("{\n"
               ".reg .pred own, any;\n"
               "setp.ne.u32 own, %3, 0;\n"
               "barrier.cta.red.or.aligned.pred any, %1, %2, own;\n"
               "selp.b32 %0, 1, 0, any;\n"
               "}"
               : "=r"(any)
               : "r"(name), "r"(threads), "r"(condition ? 1u : 0u)
               : "memory");
  return any != 0;
}

} // namespace nsa
