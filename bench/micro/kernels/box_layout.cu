// A tile of 64 rows of 128 bytes from boxes of `rows` rows, each from a place of its own, written out as it lies in
// shared memory.
#include "sm90/ptx_barrier.cuh"
#include "sm90/ptx_tma.cuh"

using namespace nsa;

constexpr int32 kTileRows = 64, kRowBytes = 128;

extern "C" __global__ void __launch_bounds__(128, 1)
    box_layout(const __grid_constant__ TensorMap map, const int32 *places, int32 rows, uint4 *tile) {
  extern __shared__ char shared[];
  const uint32 barrier = shared_address(shared), base = (barrier + 8 + 1023) & ~1023u;
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    fence_barrier_init();
    barrier_arrive_expect(barrier, kTileRows * kRowBytes);
    for (int32 box = 0; box * rows < kTileRows; ++box)
      tma_load(base + box * rows * kRowBytes, map, barrier, 0, places[box], 0, 0);
  }
  __syncthreads();
  barrier_wait(barrier, 0);
  const uint4 *from = reinterpret_cast<const uint4 *>(shared + (base - barrier));
  for (int32 i = threadIdx.x; i < kTileRows * kRowBytes / 16; i += blockDim.x)
    tile[i] = from[i];
}
