// What a cluster of kCluster blocks of 256 threads costs, in clocks of each block: its barrier, a load of the own shared
// memory, a load of a neighbour's, 4 KB of every other block, a bulk copy of 4 KB to a neighbour. Five numbers a block.
#include "ptx_copy.cuh"
#include "sm90/ptx_barrier.cuh"
#include "sm90/ptx_cluster.cuh"
#include "sm90/ptx_exchange.cuh"
#include "sm90/ptx_tma.cuh"

using namespace nsa;

constexpr int32 kBytes = 4096, kThreads = 256, kMeasures = 5;
static_assert(kBytes == kThreads * 16, "a thread reads 16 bytes of each block");

NSA_DEVICE void cluster_barrier() {
  cluster_arrive();
  cluster_wait();
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) cluster_latency(int32 repetitions, int64 *clocks) {
  extern __shared__ char shared[];
  const uint32 base = shared_address(shared), barrier = base, words = (base + 8 + 127) & ~127u;
  const uint32 landing = words + kBytes;
  const uint32 rank = cluster_rank(), neighbour = rank ^ 1;
  int64 *result = clocks + blockIdx.x * kMeasures;
  uint32 *own = reinterpret_cast<uint32 *>(shared + (words - base));
  // Each word names the byte where the next one of the chase lies.
  for (int32 i = threadIdx.x; i < kBytes / 4; i += kThreads)
    own[i] = (i * 4 + 132) % kBytes;
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    fence_barrier_init();
  }
  fence_async();
  __syncthreads();
  cluster_barrier();

  int64 start = clock64();
  for (int32 i = 0; i < repetitions; ++i)
    cluster_barrier();
  if (threadIdx.x == 0)
    result[0] = (clock64() - start) / repetitions;
  __syncwarp();

  if (threadIdx.x == 0) {
    uint32 at = 0;
    start = clock64();
    for (int32 i = 0; i < repetitions; ++i)
      at = *reinterpret_cast<volatile uint32 *>(shared + (words - base) + at);
    result[1] = (clock64() - start) / repetitions + at / kBytes; // `at` is below: the clock waits for it
    const uint32 there = cluster_address(words, neighbour);
    at = 0;
    start = clock64();
    for (int32 i = 0; i < repetitions; ++i)
      at = __float_as_uint(load_cluster(there + at));
    result[2] = (clock64() - start) / repetitions + at / kBytes;
  }
  __syncwarp();
  cluster_barrier();

  start = clock64();
  uint32 sum = 0;
  for (int32 i = 0; i < repetitions; ++i) {
    uint32 parts[kCluster - 1][4];
#pragma unroll
    for (uint32 other = 1; other < kCluster; ++other)
      load_cluster_16(parts[other - 1], cluster_address(words + threadIdx.x * 16, (rank + other) % kCluster));
#pragma unroll
    for (uint32 other = 1; other < kCluster; ++other)
      sum += parts[other - 1][0] + parts[other - 1][1] + parts[other - 1][2] + parts[other - 1][3];
    sum += __syncthreads_or(sum == 1); // every thread has its parts; a multiple of 4 it always is
  }
  if (threadIdx.x == 0)
    result[3] = (clock64() - start) / repetitions + (sum & 1);
  __syncwarp();
  cluster_barrier();

  // To and fro: what arrives is sent back, so that no two clocks are compared.
  if (threadIdx.x == 0) {
    const uint32 to = cluster_address(landing, neighbour), signal = cluster_address(barrier, neighbour);
    start = clock64();
    for (int32 i = 0; i < repetitions; ++i) {
      barrier_arrive_expect(barrier, kBytes);
      if (rank % 2 == 0)
        bulk_copy_cluster(to, words, kBytes, signal);
      barrier_wait(barrier, i & 1);
      if (rank % 2 == 1)
        bulk_copy_cluster(to, words, kBytes, signal);
    }
    result[4] = (clock64() - start) / repetitions / 2;
  }
  __syncwarp();
  cluster_barrier();
}
