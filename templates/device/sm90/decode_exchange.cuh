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
template <typename Shape> NSA_DEVICE void make_barriers(const DecodeMemory<Shape> &memory, const DecodePlace &place) {
  constexpr int32 kSoftmaxBytes = Shape::kCluster * Shape::kGroup * 8;
  const int32 partial_bytes = Shape::kCluster * slice_size<Shape>(place.rank) * 4;
  const auto make = [&](int32 message, int32 bytes) {
    const uint32 barrier = shared_address(memory.barrier(message));
    barrier_init(barrier, 1);
    barrier_arrive_expect(barrier, bytes);
  };
  make(kCmpSoftmax, kSoftmaxBytes);
  make(kCmpPartials, partial_bytes);
  make(kProposals, (Shape::kCluster - 1) * place.proposed * 8);
  make(kWinPartials, kSoftmaxBytes + partial_bytes);
  make(kSelPartials, kSoftmaxBytes + partial_bytes);
#pragma unroll
  for (int32 stage = 0; stage < Shape::kStages; ++stage) {
    barrier_init(shared_address(memory.full(stage)), Shape::kLoaders * kWarpSize);
    barrier_init(shared_address(memory.empty(stage)), Shape::kWarps);
  }
  fence_barrier_init();
}

// The messages of a branch. The list waits for maxima and sums of the compressed branch, and nothing for its results.
NSA_DEVICE int32 softmax_message(int32 branch) {
  return branch == kCmp ? kCmpSoftmax : branch == kWin ? kWinPartials : kSelPartials;
}
NSA_DEVICE int32 partials_message(int32 branch) { return branch == kCmp ? kCmpPartials : softmax_message(branch); }

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

// Adds up the maxima and sums that the blocks sent of a branch. In the place of the maximum that a block sent comes the
// factor of its result. A head without weight has the result 0. `use(head, lse)` gets the log-sum-exp in base 2 of each
// head, in one thread.
//
// Neighbouring lanes hold what the blocks sent of one head.
template <typename Shape, typename Use>
NSA_DEVICE void make_factors(const DecodeMemory<Shape> &memory, int32 branch, float scale, const Use &use) {
  constexpr int32 kCluster = Shape::kCluster;
  const int32 rank = static_cast<int32>(threadIdx.x) % kCluster;
#pragma unroll 1
  for (int32 first = 0; first < Shape::kGroup; first += Shape::kThreads / kCluster) {
    const int32 head = first + static_cast<int32>(threadIdx.x) / kCluster;
    float *part = memory.softmax(branch, rank, min(head, Shape::kGroup - 1));
    const float own = part[0];
    float top = own;
#pragma unroll
    for (int32 distance = 1; distance < kCluster; distance *= 2)
      top = max_number(top, shuffle_xor(top, distance));
    const float weight = exp2_approx((own - (top == -infinity() ? 0 : top)) * scale);
    float sum = part[1] * weight;
#pragma unroll
    for (int32 distance = 1; distance < kCluster; distance *= 2)
      sum += shuffle_xor(sum, distance);
    if (head >= Shape::kGroup)
      continue;
    part[0] = sum == 0 ? 0 : weight / sum;
    // A sum that is NaN counts as weight.
    if (rank == 0)
      use(head, sum == 0 ? -infinity() : top * scale + log2_approx(sum));
  }
  meet<Shape>();
}

} // namespace nsa
