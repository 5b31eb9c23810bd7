// How the blocks of a cluster tell each other what they found of a branch: maxima, sums and results of the softmax.
//
// Each block sends its numbers to the block that adds them up, as soon as it has them (ptx_push.cuh). The results
// [head, column] of a group are cut into slices, one for each block.
#pragma once

#include "sm90/decode_attend.cuh"
#include "sm90/ptx_cluster.cuh"
#include "sm90/ptx_push.cuh"

namespace nsa {

// Returns how many elements of the result the slice of a block has.
template <typename Shape> NSA_DEVICE int32 slice_size(int32 rank) {
  return max(min(Shape::kResults - rank * Shape::kSlice, Shape::kSlice), 0);
}

// One thread prepares the mbarriers of the block. Each waits for the bytes of its messages from all blocks.
template <typename Shape> NSA_DEVICE void make_barriers(const DecodeMemory<Shape> &memory, int32 rank) {
  constexpr int32 kSoftmaxBytes = Shape::kCluster * Shape::kGroup * 8;
  const int32 partial_bytes = Shape::kCluster * slice_size<Shape>(rank) * 4;
  const auto make = [&](int32 message, int32 bytes) {
    const uint32 barrier = shared_address(memory.barrier(message));
    barrier_init(barrier, 1);
    barrier_arrive_expect(barrier, bytes);
  };
  make(kCmpSoftmax, kSoftmaxBytes);
  make(kCmpPartials, partial_bytes);
  make(kProposals, Shape::kCandidates * 8);
  make(kWinPartials, kSoftmaxBytes + partial_bytes);
  make(kSelPartials, kSoftmaxBytes + partial_bytes);
  fence_barrier_init();
}

// Waits for all messages of a kind. The wait acquires for the threads of the block alone, which is enough for bytes in
// its own shared memory. Acquired for the cluster, it would empty the L1 cache each time.
template <typename Shape> NSA_DEVICE void await(const DecodeMemory<Shape> &memory, int32 message) {
  barrier_wait(shared_address(memory.barrier(message)), 0);
}

// Sends the results of a branch, each element to the block that adds it up.
template <typename Shape>
NSA_DEVICE void push_partials(const DecodeState<Shape> &state, const DecodeMemory<Shape> &memory, int32 rank,
                              int32 branch, int32 message) {
  const int32 warp = static_cast<int32>(threadIdx.x) / kWarpSize;
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  const uint32 partials = shared_address(memory.partials(branch, rank));
  const uint32 barrier = shared_address(memory.barrier(message));
#pragma unroll
  for (int32 tile = 0; tile < Shape::kHeadTiles; ++tile)
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
#pragma unroll
      for (int32 i = 0; i < Shape::kVTiles; ++i) {
        const int32 head = tile * kSlabRows + half * 8 + lane / 4;
        const int32 column = (warp * Shape::kVTiles + i) * kTileColumns + lane % 4 * 2;
        if (head >= Shape::kGroup || column >= Shape::kVDim)
          continue;
        const int32 element = head * Shape::kVDim + column;
        const int32 owner = element / Shape::kSlice;
        push_words(cluster_address(partials + element % Shape::kSlice * 4, owner),
                   __float_as_uint(state.o[tile][i][2 * half]), __float_as_uint(state.o[tile][i][2 * half + 1]),
                   cluster_address(barrier, owner));
      }
}

// Sends maxima and sums of a branch to all blocks.
template <typename Shape>
NSA_DEVICE void push_softmax(const DecodeState<Shape> &state, const DecodeMemory<Shape> &memory, int32 rank,
                             int32 branch, int32 message) {
  const ScorePlace<Shape> at;
  float *sums = memory.floats(Shape::kSumsAt) + branch * Shape::kKeyWarps * Shape::kHeads;
  float *maxima = memory.floats(Shape::kMaximaAt) + branch * Shape::kHeads;
#pragma unroll
  for (int32 own = 0; own < Shape::kScoreTiles; ++own)
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      float sum = state.l[own][half];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      const int32 head = (at.first_tile() + own) * kSlabRows + half * 8 + at.lane / 4;
      if (at.lane % 4 == 0)
        sums[at.key_warp * Shape::kHeads + head] = sum;
      if (at.lane % 4 == 0 && at.key_warp == 0)
        maxima[head] = at.of_own(state.m, own, half);
    }
  meet<Shape>();
  const uint32 barrier = shared_address(memory.barrier(message));
#pragma unroll 1
  for (int32 i = threadIdx.x; i < Shape::kCluster * Shape::kGroup; i += Shape::kThreads) {
    const int32 receiver = i / Shape::kGroup;
    const int32 head = i % Shape::kGroup;
    float sum = 0;
#pragma unroll
    for (int32 of = 0; of < Shape::kKeyWarps; ++of)
      sum += sums[of * Shape::kHeads + head];
    push_words(cluster_address(shared_address(memory.softmax(branch, rank, head)), receiver),
               __float_as_uint(maxima[head]), __float_as_uint(sum), cluster_address(barrier, receiver));
  }
}

// The softmax of a head over all blocks: the greatest score, and the sum of the weights against it.
struct WholeSoftmax {
  float top;
  float sum;

  NSA_DEVICE float finite() const { return top == -infinity() ? 0 : top; }
  // The factor of a result. A head without weight has the result 0.
  NSA_DEVICE float norm() const { return sum == 0 ? 0 : 1 / sum; }
  // The log-sum-exp in base 2. A sum that is NaN counts as weight.
  NSA_DEVICE float lse(float scale) const { return sum == 0 ? -infinity() : top * scale + log2_approx(sum); }
};

// Adds up what the blocks sent of a head. `use(rank, weight)` gets the weight of each block's result.
template <typename Shape, typename Use>
NSA_DEVICE WholeSoftmax add_softmax(const DecodeMemory<Shape> &memory, int32 branch, int32 head, float scale,
                                    const Use &use) {
  WholeSoftmax whole = {-infinity(), 0};
#pragma unroll
  for (int32 rank = 0; rank < Shape::kCluster; ++rank)
    whole.top = max_number(whole.top, memory.softmax(branch, rank, head)[0]);
#pragma unroll
  for (int32 rank = 0; rank < Shape::kCluster; ++rank) {
    const float *part = memory.softmax(branch, rank, head);
    const float weight = exp2_approx((part[0] - whole.finite()) * scale);
    whole.sum = fmaf(part[1], weight, whole.sum);
    use(rank, weight);
  }
  return whole;
}

} // namespace nsa
