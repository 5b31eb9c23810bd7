// Clusters of blocks that share their shared memory, and roles within a block (PTX ISA, sm_90).
#pragma once

#include "types.cuh"

namespace nsa {

// The block's number in its cluster.
NSA_DEVICE uint32 cluster_rank() {
  uint32 result;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(result));
  return result;
}

// All threads of the cluster: what was written before is visible after it.
NSA_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory"); }
NSA_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory"); }

// The place in block `rank` of what lies at `address` in the own shared memory.
NSA_DEVICE uint32 cluster_address(uint32 address, uint32 rank) {
  uint32 result;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
  return result;
}

// A float of another block's shared memory, at an address from cluster_address.
NSA_DEVICE float load_cluster(uint32 address) {
  float result;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(result) : "r"(address) : "memory");
  return result;
}

// One lane of the whole warp, always the same one.
NSA_DEVICE bool elect_lane() {
  uint32 elected;
  asm volatile("{\n"
               ".reg .pred elected;\n"
               "elect.sync _|elected, 0xffffffff;\n"
               "selp.b32 %0, 1, 0, elected;\n"
               "}"
               : "=r"(elected));
  return elected != 0;
}

// Registers of each thread of the warpgroup from here on; all its warps execute it. It takes effect in kernels with a
// launch bound of one block a multiprocessor or more.
template <int32 kRegisters> NSA_DEVICE void raise_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256, "registers come by eight, 24 to 256");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kRegisters));
}
template <int32 kRegisters> NSA_DEVICE void lower_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256, "registers come by eight, 24 to 256");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kRegisters));
}

// The next kernel of the stream may start, and: wait for the one before to end with its writes visible.
NSA_DEVICE void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" : : : "memory"); }
NSA_DEVICE void wait_for_predecessors() { asm volatile("griddepcontrol.wait;" : : : "memory"); }

} // namespace nsa
