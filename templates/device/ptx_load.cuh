// Loads of memory that nothing writes while the kernel runs (PTX ISA, "ld.global.nc").
#pragma once

#include "types.cuh"

namespace nsa {

// The compiler may move load_unchanging over copies and stores, which it does not do with a plain load. Therefore
// several loads by load_unchanging can be in flight at the same time.
NSA_DEVICE int32 load_unchanging(const int32 *source) {
  int32 result;
  asm("ld.global.nc.s32 %0, [%1];" : "=r"(result) : "l"(__cvta_generic_to_global(source)));
  return result;
}

} // namespace nsa
