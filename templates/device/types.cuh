// Fixed-width integers, 16-bit float storage and the annotations of device functions.
// A kernel's text is self-contained: no toolkit header, no standard header.
// Code that is only index arithmetic also compiles with a host compiler, so that unit tests can check it.
#pragma once

#ifdef __CUDACC__
#define NSA_DEVICE __device__ __forceinline__
#else
#define NSA_DEVICE inline
#endif

namespace nsa {

using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

// Storage only; arithmetic happens in float.
struct bf16 {
  uint16 bits;
};
struct f16 {
  uint16 bits;
};

// As templates spell element types.
using f32 = float;

inline constexpr int32 kWarpSize = 32;

template <typename A, typename B> inline constexpr bool kSameType = false;
template <typename A> inline constexpr bool kSameType<A, A> = true;

template <typename T> inline constexpr bool kIsHalf = kSameType<T, bf16> || kSameType<T, f16>;

} // namespace nsa
