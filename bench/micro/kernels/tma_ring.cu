// A ring of boxes from L2 to shared memory: one thread, or kIssuers lanes, start copies, a warp waits for each stage and
// gives it back. kCluster 2: each of two blocks starts half of a box and both receive it. kScattered: an order of its
// own for each cluster; else steps of one box (order 2) or of one box for each cluster (order 1).
#include "sm90/ptx_barrier.cuh"
#include "sm90/ptx_cluster.cuh"
#include "sm90/ptx_tma.cuh"

using namespace nsa;

constexpr int32 kBoxColumns = 64, kBoxRowBytes = 128;
constexpr int32 kMostStages = 64;

struct BoxWalk {
  uint32 place, step, count;

  NSA_DEVICE BoxWalk(int32 boxes, int32 order, uint32 asker, uint32 askers, uint32 lane) : count(boxes) {
    if constexpr (kScattered) {
      place = (asker * 32 + lane) * 0x9e3779b1u;
    } else {
      step = (order == 1 ? askers : 1) * kIssuers;
      place = ((order == 1 ? asker : 0) + lane * (order == 1 ? askers : 1)) % count;
    }
  }

  NSA_DEVICE uint32 next() {
    if constexpr (kScattered) {
      place = place * 1664525u + 1013904223u; // Knuth's linear congruences: the high bits are the better ones
      return __umulhi(place, count);
    }
    const uint32 box = place;
    place += step;
    if (place >= count)
      place -= count;
    return box;
  }
};

extern "C" __global__ void __launch_bounds__(64, 1)
    tma_ring(const __grid_constant__ TensorMap map, int32 boxes, int32 box_rows, int32 stage_boxes, int32 stages,
             int32 iterations, int32 order) {
  extern __shared__ char shared[];
  const uint32 barriers = shared_address(shared), tiles = (barriers + 16 * kMostStages + 1023) & ~1023u;
  auto full = [&](int32 stage) { return barriers + 16 * stage; };
  auto empty = [&](int32 stage) { return barriers + 16 * stage + 8; };
  const int32 warp = threadIdx.x / kWarpSize, lane = kIssuers > 1 ? threadIdx.x % kWarpSize : 0;
  const uint32 rank = kCluster > 1 ? cluster_rank() : 0;
  if (threadIdx.x == 0) {
    for (int32 stage = 0; stage < stages; ++stage) {
      barrier_init(full(stage), 1);
      barrier_init(empty(stage), kCluster);
    }
    fence_barrier_init();
  }
  __syncthreads();
  if constexpr (kCluster > 1) {
    cluster_arrive();
    cluster_wait();
  }

  const int32 box_bytes = box_rows * kBoxRowBytes, part_rows = box_rows / kCluster;
  // Elected, so that the assembler knows of one thread; otherwise each copy is a loop over the lanes.
  if (warp == 0 && (kIssuers > 1 || elect_lane())) {
    BoxWalk walk(boxes, order, blockIdx.x / kCluster, gridDim.x / kCluster, lane);
    int32 stage = 0, parity = 1;
    for (int32 i = 0; i < iterations; ++i) {
      barrier_wait(empty(stage), parity);
      if (kIssuers == 1 || lane == 0)
        barrier_arrive_expect(full(stage), box_bytes * stage_boxes);
      if constexpr (kIssuers > 1)
        __syncwarp();
      uint32 destination = tiles + (stage * stage_boxes + lane) * box_bytes + rank * part_rows * kBoxRowBytes;
#pragma unroll 4
      for (int32 n = lane; n < stage_boxes; n += kIssuers, destination += kIssuers * box_bytes) {
        const uint32 box = walk.next();
        const int32 x = box % 2 * kBoxColumns, y = box / 2 * box_rows + rank * part_rows;
        if constexpr (kCluster > 1)
          tma_multicast(destination, map, full(stage), uint16((1 << kCluster) - 1), x, y, 0, 0);
        else
          tma_load(destination, map, full(stage), x, y, 0, 0);
      }
      if (++stage == stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }
  if (warp == 1 && elect_lane()) {
    int32 stage = 0, parity = 0;
    for (int32 i = 0; i < iterations; ++i) {
      barrier_wait(full(stage), parity);
      if constexpr (kCluster > 1)
        for (uint32 block = 0; block < kCluster; ++block)
          barrier_arrive_cluster(cluster_address(empty(stage), block));
      else
        barrier_arrive(empty(stage));
      if (++stage == stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }
  __syncthreads();
  // No block ends while another may still write into it.
  if constexpr (kCluster > 1) {
    cluster_arrive();
    cluster_wait();
  }
}
