// Fixed-width integers, storage for 16-bit floats, and the annotation of device functions. A kernel's text is
// self-contained: it includes no header of the CUDA toolkit and no standard header. Files that only compute indices
// also compile with a host compiler, so that unit tests can check them.
#pragma once

#ifdef __CUDACC__
#define NSA_DEVICE __device__ __forceinline__
#else
#define NSA_DEVICE inline
#endif

// The launch bounds of a kernel. The compiler defines NSA_RESIDENT_BLOCKS where a program says how many blocks share a
// multiprocessor, and where ptxas would spill and leave registers unused (compiler/driver/Target.h).
#ifdef NSA_RESIDENT_BLOCKS
#define NSA_LAUNCH_BOUNDS(threads) __launch_bounds__(threads, NSA_RESIDENT_BLOCKS)
#else
#define NSA_LAUNCH_BOUNDS(threads) __launch_bounds__(threads)
#endif

namespace nsa {

using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

// The types bf16 and f16 hold only the bits of a number and have no arithmetic operators. All arithmetic on 16-bit
// floats happens in float.
struct bf16 {
  uint16 bits;
};
struct f16 {
  uint16 bits;
};

// Rendered templates use the name f32 for the type float.
using f32 = float;

inline constexpr int32 kWarpSize = 32;

template <typename A, typename B> inline constexpr bool kSameType = false;
template <typename A> inline constexpr bool kSameType<A, A> = true;

template <typename T> inline constexpr bool kIsHalf = kSameType<T, bf16> || kSameType<T, f16>;

} // namespace nsa
