// Runs device code of templates/device on the host: one fibre per CUDA thread, which runs until a warp or the block has
// to meet. The folder simulated/ holds C++ twins of the PTX wrappers, written after the PTX ISA; everything else is the
// real device library. What it adds to a GPU: lanes that meet at different operations, a thread that leaves others
// waiting, and an asynchronous copy out of bounds are errors; copies arrive as late as allowed; shared memory starts as
// NaN. One simulation at a time; threads take turns, so results repeat.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

// What CUDA declares by itself.
#define __global__
#define __grid_constant__
#define __shared__
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};
extern Index3 threadIdx, blockIdx;
extern Index3 gridDim; // as the test sets it
// The dynamic shared memory of the block: kernels declare it by this name.
extern "C" unsigned char shared_memory[];

namespace simulator {

inline constexpr int kWarpSize = 32;
inline constexpr size_t kSharedBytes = 227 * 1024;

// The order in which threads take their turns: a race shows as a difference between orders.
enum class Order { kForward, kBackward, kWarpsBackward };

// Runs `body` once for each of `threads` threads of one block. Throws std::runtime_error on an error of the kernel.
void runBlock(int threads, Index3 block, Order order, const std::function<void()> &body);

// All lanes of the calling thread's warp meet, each with an argument; `perform` then runs once with all 32. `operation`
// must be the same for all of them.
void meetWarp(const char *operation, void *argument, const std::function<void(void *const *)> &perform);
void meetBlock(const char *operation, void *argument, const std::function<void(const std::vector<void *> &)> &perform);

// cp.async of the calling thread.
void beginCopy(uint32_t sharedAddress, const void *source, int bytes);
void commitCopies();
void waitCopies(int pending);

void check(bool condition, const char *message);

template <typename To, typename From> To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

} // namespace simulator

inline void __syncthreads() {
  simulator::meetBlock("__syncthreads", nullptr, [](const std::vector<void *> &) {});
}
inline float __uint_as_float(uint32_t x) { return simulator::bits<float>(x); }
inline uint32_t __float_as_uint(float x) { return simulator::bits<uint32_t>(x); }
inline int atomicCAS(int *address, int expected, int desired) {
  int old = *address;
  if (old == expected)
    *address = desired;
  return old;
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
