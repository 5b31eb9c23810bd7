// The copy engine (PTX ISA, "cp.async.bulk"; sm_90). The copy engine copies between global and shared memory: boxes of
// a tensor that a tensor map describes, and plain runs of bytes. One thread issues a copy. A load by the copy engine
// completes on an mbarrier (ptx_barrier.cuh). A store by the copy engine belongs to a group of stores of the thread
// that issued it (cp.async.bulk.commit_group). Coordinates of a box are in elements, and the contiguous dimension comes
// first. A load fills the elements of a box that lie outside of the tensor with zeros, and the mbarrier counts the
// bytes of these zeros too. A store does not write the elements of a box that lie outside of the tensor.
//
// The copy engine and wgmma see what plain stores wrote into shared memory only after fence_async.
#pragma once

#include "ptx_copy.cuh"

namespace nsa {

// A tensor map as the driver encodes it (cuTensorMapEncodeTiled). A tensor map is a __grid_constant__ parameter of the
// kernel.
struct alignas(64) TensorMap {
  uint64 words[16];
};
static_assert(sizeof(TensorMap) == 128, "a tensor map takes 16 slots of 8 bytes");

// Returns whether the launcher could make the tensor map. The launcher passes a tensor map of zeros for a view that the
// copy engine cannot address.
NSA_DEVICE bool is_present(const TensorMap &map) {
  uint64 bits = 0;
#pragma unroll
  for (int32 i = 0; i < 16; ++i)
    bits |= map.words[i];
  return bits != 0;
}

NSA_DEVICE void prefetch_map(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory");
}

// Orders accesses to shared memory: plain accesses before the fence come before accesses by the copy engine and by
// wgmma after the fence. PTX calls the copy engine and wgmma the asynchronous proxy.
NSA_DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// Loads a box from global to shared memory. The destination of a load must be a multiple of 128 bytes. If the tensor
// map has a swizzle, the destination must also be a multiple of eight times the width of the swizzle (an atom,
// descriptor.cuh).
NSA_DEVICE void tma_load(uint32 destination, const TensorMap &map, uint32 barrier, int32 x, int32 y, int32 z, int32 w) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%3, %4, %5, %6}], [%2];"
               :
               : "r"(destination), "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

// Loads a box into the shared memory of every block of the cluster whose bit is set in `blocks`. Each receiving block
// gets the box at its shared-memory address `destination`, and counts the bytes on its own mbarrier at the address
// `barrier`.
NSA_DEVICE void tma_multicast(uint32 destination, const TensorMap &map, uint32 barrier, uint16 blocks, int32 x, int32 y,
                              int32 z, int32 w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5, %6, %7}], [%2], %3;"
      :
      : "r"(destination), "l"(&map), "r"(barrier), "h"(blocks), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// Fetches a box of a tensor into L2 only.
NSA_DEVICE void tma_prefetch(const TensorMap &map, int32 x, int32 y, int32 z, int32 w) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];"
               :
               : "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

// bulk_store copies `bytes` contiguous bytes from shared to global memory. bulk_reduce_add adds contiguous elements in
// shared memory to contiguous elements in global memory. `destination`, `source` and `bytes` must be multiples of 16.
NSA_DEVICE void bulk_store(void *destination, uint32 source, int32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               :
               : "l"(__cvta_generic_to_global(destination)), "r"(source), "r"(bytes)
               : "memory");
}
NSA_DEVICE void bulk_reduce_add(float *destination, uint32 source, int32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;"
               :
               : "l"(__cvta_generic_to_global(destination)), "r"(source), "r"(bytes)
               : "memory");
}
NSA_DEVICE void bulk_reduce_add(bf16 *destination, uint32 source, int32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;"
               :
               : "l"(__cvta_generic_to_global(destination)), "r"(source), "r"(bytes)
               : "memory");
}
NSA_DEVICE void bulk_reduce_add(f16 *destination, uint32 source, int32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;"
               :
               : "l"(__cvta_generic_to_global(destination)), "r"(source), "r"(bytes)
               : "memory");
}

// Closes the group of stores that this thread issued since the last commit.
NSA_DEVICE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }

// Waits until at most kPending of this thread's latest groups of stores are incomplete.
template <int32 kPending> NSA_DEVICE void wait_stores() {
  asm volatile("cp.async.bulk.wait_group %0;" : : "n"(kPending) : "memory");
}

} // namespace nsa
