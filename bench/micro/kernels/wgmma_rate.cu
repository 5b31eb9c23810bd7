// Groups of kSteps products m64n(kColumns)k16 of each warpgroup, A in shared memory or in registers, into kChains
// accumulators in turns; a group runs on while the next one is started. Writes the clocks that the block took.
#include "ptx_copy.cuh"
#include "sm90/descriptor.cuh"
#include "sm90/ptx_tma.cuh"
#include "sm90/ptx_wgmma.cuh"

using namespace nsa;

constexpr int32 kDepth = 128, kParts = kDepth / kWgmmaDepth;
constexpr int32 kWarpgroupThreads = 128;

// Two bf16 of either sign between 1/4 and 1.
NSA_DEVICE uint32 random_pair(uint32 seed) {
  seed = (seed ^ seed >> 16) * 0x85ebca6bu;
  seed = (seed ^ seed >> 13) * 0xc2b2ae35u;
  seed ^= seed >> 16;
  return (seed & 0x80ff80ffu) | 0x3e803e80u;
}

extern "C" __global__ void __launch_bounds__(kMostThreads, 1) wgmma_rate(int32 groups, int64 *clocks) {
  extern __shared__ char shared[];
  const uint32 base = shared_address(shared), tiles = (base + 1023) & ~1023u;
  const int32 warpgroup = threadIdx.x / kWarpgroupThreads;
  constexpr int32 kTileABytes = kInRegisters ? 0 : kWgmmaRows * kDepth * 2;
  const int32 bytes_a = blockDim.x / kWarpgroupThreads * kTileABytes;
  uint32 *words = reinterpret_cast<uint32 *>(shared + (tiles - base));
  for (int32 i = threadIdx.x; i < (bytes_a + kColumns * kDepth * 2) / 4; i += blockDim.x)
    words[i] = random_pair(i);
  fence_async();
  __syncthreads();

  const uint64 a = depth_major_descriptor(tiles + warpgroup * kTileABytes, kSwizzle128);
  const uint64 b = depth_major_descriptor(tiles + bytes_a, kSwizzle128);
  uint32 a_registers[kInRegisters ? kParts : 1][4];
  if constexpr (kInRegisters)
    for (int32 part = 0; part < kParts; ++part)
      for (int32 i = 0; i < 4; ++i)
        a_registers[part][i] = random_pair(threadIdx.x * 32 + part * 4 + i + 1234567);
  float sums[kChains][kColumns / 2] = {};

  __syncthreads();
  const int64 start = clock64();
#pragma unroll 1
  for (int32 group = 0; group < groups; ++group) {
    wgmma_fence();
#pragma unroll
    for (int32 step = 0; step < kSteps; ++step) {
      const int32 depth = step % kParts * kWgmmaDepth;
      const uint64 b_part = b + descriptor_step(depth_major_offset(depth, kColumns, kSwizzle128));
      if constexpr (kInRegisters)
        wgmma<false>(bf16{}, sums[step % kChains], a_registers[step % kParts], b_part, 1);
      else
        wgmma<false, false>(bf16{}, sums[step % kChains],
                            a + descriptor_step(depth_major_offset(depth, kWgmmaRows, kSwizzle128)), b_part, 1);
    }
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  // Finite numbers all of them: never a NaN. Without a use the assembler leaves out what makes them.
  float total = 0;
  for (int32 chain = 0; chain < kChains; ++chain) {
    wgmma_hold(sums[chain]);
    for (int32 i = 0; i < kColumns / 2; ++i)
      total += sums[chain][i];
  }
  const bool broken = __syncthreads_or(total != total);
  if (threadIdx.x == 0)
    clocks[blockIdx.x] = broken ? 0 : clock64() - start;
}
