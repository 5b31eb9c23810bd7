// Products m16n8k16 of each warp by mma.sync into kChains accumulators in turns, operands in registers. Writes the clocks
// that the block took.
#include "ptx_matrix.cuh"

using namespace nsa;

extern "C" __global__ void __launch_bounds__(512, 1) mma_rate(int32 iterations, int64 *clocks) {
  float sums[kChains][4] = {};
  uint32 a[4], b[kChains][2];
  // bf16 between 1/4 and 1, of either sign.
  auto random_pair = [](uint32 seed) { return (seed * 2654435761u >> 3 & 0x80ff80ffu) | 0x3e803e80u; };
  for (int32 i = 0; i < 4; ++i)
    a[i] = random_pair(threadIdx.x * 4 + i + 1);
  for (int32 chain = 0; chain < kChains; ++chain)
    for (int32 i = 0; i < 2; ++i)
      b[chain][i] = random_pair(threadIdx.x * 2 * kChains + chain * 2 + i + 54321);
  __syncthreads();
  const int64 start = clock64();
  for (int32 i = 0; i < iterations; ++i)
#pragma unroll
    for (int32 chain = 0; chain < kChains; ++chain)
      mma_m16n8k16(bf16{}, sums[chain], a, b[chain][0], b[chain][1]);
  float total = 0;
  for (int32 chain = 0; chain < kChains; ++chain)
    for (int32 i = 0; i < 4; ++i)
      total += sums[chain][i];
  // Products of finite numbers: never. It makes the clock wait for them.
  const bool broken = __syncthreads_or(total != total);
  if (threadIdx.x == 0)
    clocks[blockIdx.x] = broken ? 0 : clock64() - start;
}
