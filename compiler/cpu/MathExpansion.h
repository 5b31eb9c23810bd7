// Expands exp2, log2, erf and the rounding to 16-bit floats into plain arithmetic. Because exp2, log2, erf and rounding
// are plain arithmetic, a compiled CPU kernel calls neither libm nor compiler-rt. The plain arithmetic also gives the
// same bits on CPUs with different instruction sets. The arguments of expandLog2 and expandErf are f32 or
// vectors of f32; expandExp2 also takes f64.
// Thread-safety: as the CpuBuilder.
#pragma once

#include "compiler/cpu/CpuBuilder.h"

namespace nsa::cpu {

// expandExp2 has a relative error below 2e-7 in f32 and below 1e-15 in f64. Results below 2^-126 in f32, or 2^-1022 in
// f64, are 0; exp2(-inf) = 0, exp2(0) = 1, NaN stays NaN.
mlir::Value expandExp2(CpuBuilder &b, mlir::Value x);

// expandLog2: log2(0) = -inf, log2(x < 0) = NaN, NaN stays NaN. Subnormal arguments of log2 are not flushed to 0.
mlir::Value expandLog2(CpuBuilder &b, mlir::Value x);

// expandErf has a relative error below 3e-7; erf(-x) = -erf(x), erf(+-inf) = +-1, NaN stays NaN.
mlir::Value expandErf(CpuBuilder &b, mlir::Value x);

// Rounds f32 to the bits of a bf16 or f16 (16-bit integers), to nearest even. NaN stays NaN.
mlir::Value encode16(CpuBuilder &b, mlir::Value x, mlir::Type type);
// Converts the bits of a bf16 or f16 to f32, exactly.
mlir::Value decode16(CpuBuilder &b, mlir::Value bits, mlir::Type type);

} // namespace nsa::cpu
