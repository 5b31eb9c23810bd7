// Warp matrix instructions: ldmatrix, movmatrix and mma.sync m16n8k16 (PTX ISA, "Warp Level Matrix Instructions").
// All lanes of the warp execute a warp matrix instruction together.
#pragma once

#include "types.cuh"

namespace nsa {

// Loads four 8x8 matrices of 16-bit elements. In ldmatrix_x4, lanes 8*i .. 8*i + 7 give the addresses of the rows of
// matrix i. The instruction is volatile with a memory clobber, because the compiler does not see that ldmatrix reads
// shared memory.
NSA_DEVICE void ldmatrix_x4(uint32 (&result)[4], uint32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(result[0]), "=r"(result[1]), "=r"(result[2]), "=r"(result[3])
               : "r"(address)
               : "memory");
}

// ldmatrix_x4 with each matrix transposed.
NSA_DEVICE void ldmatrix_x4_transposed(uint32 (&result)[4], uint32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(result[0]), "=r"(result[1]), "=r"(result[2]), "=r"(result[3])
               : "r"(address)
               : "memory");
}

// Returns the transposed 8x8 matrix of 16-bit elements. Lane i has elements 2 * (i % 4) and the next of row i / 4.
NSA_DEVICE uint32 transpose_matrix(uint32 matrix) {
  uint32 result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(matrix));
  return result;
}

// Computes c += a b for a 16x16 `a` (four registers), a 16x8 `b` (two) and a 16x8 float `c` (four).
NSA_DEVICE void mma_m16n8k16(bf16, float (&c)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

NSA_DEVICE void mma_m16n8k16(f16, float (&c)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace nsa
