// Tiles of attention without most of softmax: each warpgroup multiplies 64 queries and 128 keys of 128 into scores, then
// probabilities and 128 values into sums, and a thread calculates kExponents exponents of its 64 scores: while the sums
// are made (kOverlap), of which the scores come first, or after them. Without kProducts exponents alone. Writes the clocks
// that the block took.
#include "ptx_copy.cuh"
#include "ptx_math.cuh"
#include "sm90/descriptor.cuh"
#include "sm90/ptx_tma.cuh"
#include "sm90/ptx_wgmma.cuh"

using namespace nsa;

constexpr int32 kColumns = 128, kDepth = 128, kScores = kColumns / 2;
constexpr int32 kWarpgroupThreads = 128, kQueryBytes = kWgmmaRows * kDepth * 2;
constexpr int32 kSumChains = 4;
static_assert(kExponents <= 2 * kScores, "each score has two exponents at most");

extern "C" __global__ void __launch_bounds__(384, 1) exponent_rate(int32 tiles_of_scores, int64 *clocks) {
  extern __shared__ char shared[];
  volatile uint32 *seen = reinterpret_cast<volatile uint32 *>(shared) + threadIdx.x;
  const uint32 base = shared_address(shared), tiles = (base + blockDim.x * 4 + 1023) & ~1023u;
  const int32 warpgroup = threadIdx.x / kWarpgroupThreads;
  const int32 query_bytes = blockDim.x / kWarpgroupThreads * kQueryBytes;
  uint32 *words = reinterpret_cast<uint32 *>(shared + (tiles - base));
  // Pairs of bf16 of either sign between 1/4 and 1.
  for (int32 i = threadIdx.x; i < (query_bytes + kColumns * kDepth * 2) / 4; i += blockDim.x)
    words[i] = (i * 2654435761u >> 3 & 0x80ff80ffu) | 0x3e803e80u;
  fence_async();
  __syncthreads();

  const uint64 queries = depth_major_descriptor(tiles + warpgroup * kQueryBytes, kSwizzle128);
  const uint64 keys = depth_major_descriptor(tiles + query_bytes, kSwizzle128);
  float scores[kScores], sums[kScores] = {}, row_sums[kSumChains] = {};
  uint32 probabilities[4];
  for (int32 i = 0; i < kScores; ++i)
    scores[i] = 0.01f * threadIdx.x + i;
  for (int32 i = 0; i < 4; ++i)
    probabilities[i] = (threadIdx.x * 2654435761u >> i & 0x80ff80ffu) | 0x3e803e80u;

  // As softmax has it: an FMA, an ex2 and an addition for each score. 0, because all are positive, which the compiler does
  // not know: the next probabilities wait for it.
  auto exponents = [&] {
#pragma unroll
    for (int32 i = 0; i < kExponents; ++i)
      scores[i % kScores] = exp2_approx(scores[i % kScores] * 0.01f - 1.0f);
#pragma unroll
    for (int32 i = 0; i < kScores; ++i)
      row_sums[i % kSumChains] += scores[i];
    uint32 signs = 0;
    for (int32 i = 0; i < kSumChains; ++i)
      signs |= __float_as_uint(row_sums[i]);
    return signs >> 31;
  };

  __syncthreads();
  const int64 start = clock64();
#pragma unroll 1
  for (int32 tile = 0; tile < tiles_of_scores; ++tile) {
    if constexpr (kProducts) {
      wgmma_fence();
#pragma unroll
      for (int32 depth = 0; depth < kDepth; depth += kWgmmaDepth)
        wgmma<false, false>(bf16{}, scores, queries + descriptor_step(depth_major_offset(depth, kWgmmaRows, kSwizzle128)),
                            keys + descriptor_step(depth_major_offset(depth, kColumns, kSwizzle128)), depth > 0);
      wgmma_commit();
#pragma unroll
      for (int32 depth = 0; depth < kDepth; depth += kWgmmaDepth)
        wgmma<false>(bf16{}, sums, probabilities,
                     keys + descriptor_step(depth_major_offset(depth, kColumns, kSwizzle128)), 1);
      wgmma_commit();
      wgmma_wait<kOverlap ? 1 : 0>();
      wgmma_hold(scores);
    }
    const uint32 nothing = exponents();
    if constexpr (kProducts) {
      *seen = nothing; // the assembler would move exponents behind the next wait, but no store that needs them

      wgmma_wait<0>();
      wgmma_hold(sums);
      wgmma_hold(probabilities);
    }
    // Not before the sums are made: a register that a product reads must not be written while any is on its way.
    probabilities[0] |= nothing;
  }
  float total = 0;
  for (int32 i = 0; i < kScores; ++i)
    total += sums[i] + scores[i];
  for (int32 i = 0; i < kSumChains; ++i)
    total += row_sums[i];
  // Never a NaN. Without a use the assembler leaves out what makes them.
  const bool broken = __syncthreads_or(total != total);
  if (threadIdx.x == 0)
    clocks[blockIdx.x] = broken ? 0 : clock64() - start;
}
