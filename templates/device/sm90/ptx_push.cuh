// Stores into the shared memory of other blocks of a cluster, which an mbarrier there counts (PTX ISA, "st.async";
// sm_90), and the arrival at a cluster's barrier that orders no memory.
//
// A block of a cluster of one block has to store plainly: its mbarrier would not count such a store.
//
// A block that waits until an mbarrier has counted all bytes sees all of them. The sender needs no fence, which would
// wait for its accesses to global memory too (0.6 us), and the receiver needs no second trip to fetch data.
#pragma once

#include "types.cuh"

namespace nsa {

// Stores one word or two words at `address`. The mbarrier at `barrier` counts 4 or 8 bytes when they arrive. Both
// addresses come from cluster_address (ptx_cluster.cuh), for the same block. `address` is a multiple of the size.
NSA_DEVICE void push_word(uint32 address, uint32 value, uint32 barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
               :
               : "r"(address), "r"(value), "r"(barrier)
               : "memory");
}

NSA_DEVICE void push_words(uint32 address, uint32 low, uint32 high, uint32 barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
               :
               : "r"(address), "r"(low), "r"(high), "r"(barrier)
               : "memory");
}

// Four numbers, which the mbarrier counts as 16 bytes.
NSA_DEVICE void push_quad(uint32 address, const float (&values)[4], uint32 barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
               :
               : "r"(address), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "r"(barrier)
               : "memory");
}

// cluster_arrive (ptx_cluster.cuh) without an order of memory accesses. With fence_barrier_init before it and
// cluster_wait behind it, other blocks see initialised mbarriers.
NSA_DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory"); }

} // namespace nsa
