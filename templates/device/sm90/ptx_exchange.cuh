// Exchange between the blocks of a cluster through shared memory (PTX ISA, sm_90). The addresses of another block's
// shared memory come from cluster_address.
#pragma once

#include "types.cuh"

namespace nsa {

// Loads 16 bytes from the shared memory of another block. The address in load_cluster_16 is a multiple of 16.
NSA_DEVICE void load_cluster_16(uint32 (&result)[4], uint32 address) {
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(result[0]), "=r"(result[1]), "=r"(result[2]), "=r"(result[3])
               : "r"(address)
               : "memory");
}

// Copies `bytes` bytes from the shared memory of this block to the shared memory of another block. The mbarrier
// `barrier` of the other block counts the bytes that arrive. `destination`, `source` and `bytes` are multiples of 16.
NSA_DEVICE void bulk_copy_cluster(uint32 destination, uint32 source, int32 bytes, uint32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(destination), "r"(source), "r"(bytes), "r"(barrier)
               : "memory");
}

} // namespace nsa
