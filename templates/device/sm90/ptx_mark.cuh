// Words of global memory by which blocks of one launch tell each other what they have done (PTX ISA, "Memory
// Consistency Model"). The accesses are strong, so no cache of a multiprocessor serves them with an old value.
#pragma once

#include "types.cuh"

namespace nsa {

// Loads a number that another block may replace later in the launch. The compiler loads it exactly once, here.
NSA_DEVICE int32 load_number(const int32 *source) {
  int32 result;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(result) : "l"(__cvta_generic_to_global(source)) : "memory");
  return result;
}

NSA_DEVICE uint64 load_mark(const uint64 *mark) {
  uint64 result;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(result) : "l"(__cvta_generic_to_global(mark)) : "memory");
  return result;
}

NSA_DEVICE void store_mark(uint64 *mark, uint64 value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(__cvta_generic_to_global(mark)), "l"(value) : "memory");
}

// Of two threads that each store a mark, pass this fence and load the other's mark, at least one sees both marks.
NSA_DEVICE void fence_marks() { asm volatile("fence.sc.gpu;" : : : "memory"); }

} // namespace nsa
