// Runs device code on the host: clusters of blocks, each CUDA thread a fibre. The code is functions of the device
// library or a kernel, as the text that NVRTC would compile. Only the headers of PTX instructions (ptx_*.cuh) are
// replaced by their twins in twins/, written after the PTX ISA.
//
// What the emulator adds to a GPU: threads run in an order drawn from a seed, one at a time, so a missing barrier shows
// as a result that depends on the seed. Shared memory starts as NaN, or as great numbers. What is copied or sent
// asynchronously is NaN at its target until it is waited for, and arrives as late as allowed. Lanes that meet at
// different instructions, threads that wait for others that never come, accesses out of shared memory, messages to a
// block that has ended and messages that nothing waits for are errors. Accesses of a plain pointer out of the shared
// memory of a block that runs are a segmentation fault. One launch runs at a time.
#pragma once

#include "runtime/base/half.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

// What CUDA declares by itself.
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

namespace emulator {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

inline constexpr int kWarpSize = 32;

struct Launch {
  Index3 grid = {1, 1, 1};
  int cluster = 1; // blocks of a cluster, along x
  int threads = 32;
  size_t sharedBytes = 227 * 1024; // as much as any block may have
  uint64_t seed = 0;               // of the order in which threads run
  int clustersAtOnce = 1;          // clusters whose threads take turns
  bool starves = false;            // lets some warp fall behind the others as far as barriers allow
};

// Runs `kernel` once for each thread of the grid. Throws std::runtime_error on an error of the kernel.
void run(const Launch &launch, const std::function<void()> &kernel);

// Everything below is called by the threads of a running kernel.

// Ends the launch with an error.
[[noreturn]] void fail(const char *message);
inline void check(bool condition, const char *message) {
  if (!condition)
    fail(message);
}

unsigned char *sharedMemory();                                // of the thread's block
uint32_t sharedOffset(const void *pointer);                   // the shared address of a pointer
unsigned char *sharedPointer(uint32_t address, size_t bytes); // of the thread's own block

// All lanes of the warp meet at `operation`, each with an argument. Returns the arguments of the lanes to the last that
// comes, who works for all and then calls `leaveWarp`. The others get null when the last one has left.
void **meetWarp(const char *operation, void *argument);
void leaveWarp();

template <typename Perform> void performTogether(const char *operation, void *argument, const Perform &perform) {
  if (void **lanes = meetWarp(operation, argument)) {
    perform(lanes);
    leaveWarp();
  }
}

// A barrier of `threads` threads of the block, or of all threads if `threads` is 0. Returns whether the condition holds
// for any of them.
bool meetBlock(const char *operation, int name, int threads, bool condition);
// Arrives at a barrier and does not wait.
void arriveBlock(const char *operation, int name, int threads);

// cp.async of the thread.
void beginCopy(uint32_t target, const void *source, int bytes);
void commitCopies();
void waitCopies(int pending);

// barrier.cluster of the thread's cluster.
void arriveCluster();
void waitCluster();
uint32_t clusterAddress(uint32_t address, uint32_t rank);

// mbarriers and st.async.
void initBarrier(uint32_t barrier, int arrivals);
void arriveExpect(uint32_t barrier, int bytes);
// Arrives at once, or when the copies of the thread are complete: they are when a thread waits for the mbarrier.
void arrive(uint32_t barrier, bool afterCopies);
void waitBarrier(uint32_t barrier, int parity);
void push(uint32_t address, const void *value, int bytes, uint32_t barrier);

template <typename To, typename From> To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

} // namespace emulator

extern emulator::Index3 threadIdx, blockIdx, gridDim;

inline void __syncthreads() { emulator::meetBlock("__syncthreads", 0, 0, false); }
inline void __syncwarp() {
  emulator::performTogether("__syncwarp", nullptr, [](void **) {});
}
inline float __uint_as_float(uint32_t x) { return emulator::bits<float>(x); }
inline uint32_t __float_as_uint(float x) { return emulator::bits<uint32_t>(x); }
inline int atomicCAS(int *address, int expected, int desired) {
  const int old = *address;
  if (old == expected)
    *address = desired;
  return old;
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
