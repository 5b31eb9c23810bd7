// Instructions for clusters of blocks that can access each other's shared memory, and instructions for blocks whose
// warps have different roles (PTX ISA, sm_90).
#pragma once

#include "types.cuh"

namespace nsa {

// The block's number in its cluster.
NSA_DEVICE uint32 cluster_rank() {
  uint32 result;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(result));
  return result;
}

// A barrier of all threads of the cluster, in two halves. After cluster_wait, all threads of the cluster see what any
// of them wrote before cluster_arrive.
NSA_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory"); }
NSA_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory"); }

// Returns the address in the shared memory of block `rank` that corresponds to `address` in the shared memory of this
// block.
NSA_DEVICE uint32 cluster_address(uint32 address, uint32 rank) {
  uint32 result;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
  return result;
}

// Loads a float from the shared memory of another block, at an address from cluster_address.
NSA_DEVICE float load_cluster(uint32 address) {
  float result;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(result) : "r"(address) : "memory");
  return result;
}

// elect_lane() is true in exactly one lane of the warp, always the same lane. All lanes call elect_lane().
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

// raise_registers and lower_registers set the number of registers of each thread of the warpgroup to kRegisters. All
// warps of the warpgroup must execute the instruction setmaxnreg. The instruction setmaxnreg takes effect only in
// kernels whose launch bounds state a number of blocks per multiprocessor.
template <int32 kRegisters> NSA_DEVICE void raise_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256, "registers come by eight, 24 to 256");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kRegisters));
}
template <int32 kRegisters> NSA_DEVICE void lower_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256, "registers come by eight, 24 to 256");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kRegisters));
}

// launch_dependents lets the next kernel of the stream start. wait_for_predecessors waits until the previous kernel of
// the stream has ended and its writes are visible.
NSA_DEVICE void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" : : : "memory"); }
NSA_DEVICE void wait_for_predecessors() { asm volatile("griddepcontrol.wait;" : : : "memory"); }

} // namespace nsa
