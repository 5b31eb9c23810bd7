// Asynchronous copies from global to shared memory (PTX ISA, "cp.async"; sm_80 and up).
#pragma once

#include "types.cuh"

namespace nsa {

// Returns the 32-bit address that PTX instructions on shared memory take for `pointer`.
NSA_DEVICE uint32 shared_address(const void *pointer) { return static_cast<uint32>(__cvta_generic_to_shared(pointer)); }

// Writes 16 bytes: the first `bytes` bytes come from `source`, and the rest are zeros. If `bytes` is 0, cp_async_16
// reads no memory. The addresses of source and destination are multiples of 16.
NSA_DEVICE void cp_async_16(uint32 destination, const void *source, int32 bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(destination), "l"(__cvta_generic_to_global(source)), "r"(bytes)
               : "memory");
}

// Closes the group of copies that this thread issued since the last commit. The group is empty if the thread has issued
// no copy since the last commit.
NSA_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }

// Waits until at most `kPending` of the groups of copies that this thread committed are incomplete.
template <int32 kPending> NSA_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}

} // namespace nsa
