// Partial results of `place_bytes` from every block to scattered places, by kMode: 0 stores of 16 bytes, 1 bulk stores,
// 2 bulk additions of fp32, 3 of bf16, 4 additions of four fp32.
#include "sm90/ptx_tma.cuh"

using namespace nsa;

constexpr int32 kPlain = 0, kBulk = 1, kBulkAddFloat = 2, kBulkAddBf16 = 3, kAddFloat = 4;
constexpr int32 kMostPlaceBytes = 8192;
constexpr int32 kInFlight = 8; // of a block

extern "C" __global__ void __launch_bounds__(128)
    partial_store(char *places, int32 place_bytes, uint32 place_mask, uint32 rounds) {
  extern __shared__ char shared[];
  const uint32 base = shared_address(shared), tile = (base + 127) & ~127u;
  uint32 *words = reinterpret_cast<uint32 *>(shared + (tile - base));
  for (int32 i = threadIdx.x; i < kMostPlaceBytes / 4; i += blockDim.x)
    words[i] = 0x3c003c00u; // small, as bf16 and as fp32
  fence_async();
  __syncthreads();
  const uint64 count = (static_cast<uint64>(place_mask) + 1) * rounds;
  for (uint64 n = blockIdx.x; n < count; n += gridDim.x) {
    // Odd times number, modulo a power of two: every place once in each round.
    char *place = places + static_cast<int64>(static_cast<uint32>(n) * 2654435761u & place_mask) * place_bytes;
    if constexpr (kMode == kPlain) {
      for (int32 at = threadIdx.x * 16; at < place_bytes; at += blockDim.x * 16)
        *reinterpret_cast<uint4 *>(place + at) = make_uint4(n, at, 0x3c003c00u, 0x3c003c00u);
    } else if constexpr (kMode == kAddFloat) {
      for (int32 at = threadIdx.x * 16; at < place_bytes; at += blockDim.x * 16)
        atomicAdd(reinterpret_cast<float4 *>(place + at), make_float4(1, 2, 3, 4));
    } else if (threadIdx.x == 0) {
      if constexpr (kMode == kBulk)
        bulk_store(place, tile, place_bytes);
      else if constexpr (kMode == kBulkAddFloat)
        bulk_reduce_add(reinterpret_cast<float *>(place), tile, place_bytes);
      else
        bulk_reduce_add(reinterpret_cast<bf16 *>(place), tile, place_bytes);
      commit_stores();
      wait_stores<kInFlight - 1>();
    }
  }
  if constexpr (kMode == kBulk || kMode == kBulkAddFloat || kMode == kBulkAddBf16)
    wait_stores<0>();
}
