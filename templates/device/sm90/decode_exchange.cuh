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
template <typename Team> NSA_DEVICE int32 slice_size(int32 rank) {
  return max(min(Team::kResults - rank * Team::kSlice, Team::kSlice), 0);
}

// A warp prepares the mbarriers of the block that count messages, one in each lane.
template <typename Team> NSA_DEVICE void make_message_barriers(const DecodeMemory<Team> &memory) {
  if constexpr (Team::kCluster > 1) {
    if (const int32 message = static_cast<int32>(threadIdx.x) % kWarpSize; message < Team::kMessages) {
      barrier_init(shared_address(memory.barrier(message)), 1);
      fence_barrier_init();
    }
  }
}

// Half of the blocks have weights of K, and half have weights of V. The last one of an odd number has none.
template <typename Team> NSA_DEVICE bool has_weights(const DecodePlace &place) {
  return Team::kCluster == 1 || place.rank < 2 * Team::Facts::kWeightParts;
}
template <typename Team> NSA_DEVICE bool has_key_weights(const DecodePlace &place) {
  return place.rank < Team::Facts::kWeightParts;
}

// Returns how many bytes of the new compressed row other blocks send to the block.
template <typename Team> NSA_DEVICE int32 fresh_sum_bytes(const DecodePlace &place) {
  const int32 all = Team::Facts::kWeightParts * (Team::kQkDim + Team::kVDim);
  const int32 own = !has_weights<Team>(place) ? 0 : has_key_weights<Team>(place) ? Team::kQkDim : Team::kVDim;
  return place.takes_fresh(Team::kInner) ? 4 * (all - own) : 0;
}

// The warp says how many bytes each mbarrier waits for, from all blocks together. Messages may have come before. They
// do not end the phase, because the arrival of this warp is still missing, and until then the count of bytes may be
// negative.
template <typename Team> NSA_DEVICE void expect_messages(const DecodeMemory<Team> &memory, const DecodePlace &place) {
  if constexpr (Team::kCluster > 1) {
    const int32 softmax_bytes = Team::kCluster * Team::kGroup * 8;
    const int32 partial_bytes = Team::kCluster * slice_size<Team>(place.rank) * 4;
    const int32 message = static_cast<int32>(threadIdx.x) % kWarpSize;
    int32 bytes = message == kCmpSoftmax    ? softmax_bytes
                  : message == kCmpPartials ? partial_bytes
                  : message == kProposals   ? (Team::kCluster - 1) * place.proposed * 8
                                            : softmax_bytes + partial_bytes;
    if constexpr (Team::kWeighs)
      if (message == kFreshSums)
        bytes = fresh_sum_bytes<Team>(place);
    if (message < Team::kMessages)
      barrier_arrive_expect(shared_address(memory.barrier(message)), bytes);
  }
}

// A loader prepares the mbarriers of its pieces, so that it need not wait for others before it loads.
template <typename Team> NSA_DEVICE void make_ring_barriers(const DecodeMemory<Team> &memory, int32 loader) {
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
#pragma unroll 1
  for (int32 number = loader + lane * Team::kLoaders; number < Team::kRingBarriers;
       number += kWarpSize * Team::kLoaders) {
    barrier_init(shared_address(memory.full(number)), kWarpSize); // the lanes of a loader
    barrier_init(shared_address(memory.empty(number)), Team::kReaders);
  }
  __syncwarp();
}

// The messages of a branch. The list waits for maxima and sums of the compressed branch, and nothing for its results.
NSA_DEVICE int32 softmax_message(int32 branch) {
  return branch == kCmp ? kCmpSoftmax : branch == kWin ? kWinPartials : kSelPartials;
}
NSA_DEVICE int32 partials_message(int32 branch) { return branch == kCmp ? kCmpPartials : softmax_message(branch); }

// Stores numbers, two or four floats, at `target` in the shared memory of a block of the cluster, as a part of a
// message. A block that has no neighbours stores them plainly: st.async serves clusters of at least two blocks.
template <typename Team, int32 kCount>
NSA_DEVICE void send(const DecodeMemory<Team> &memory, int32 message, int32 receiver, float *target,
                     const float (&numbers)[kCount]) {
  static_assert(kCount == 2 || kCount == 4, "st.async stores two or four numbers");
  if constexpr (Team::kCluster == 1) {
#pragma unroll
    for (int32 i = 0; i < kCount; ++i)
      target[i] = numbers[i];
  } else {
    const uint32 to = cluster_address(shared_address(target), receiver);
    const uint32 barrier = cluster_address(shared_address(memory.barrier(message)), receiver);
    if constexpr (kCount == 2)
      push_words(to, __float_as_uint(numbers[0]), __float_as_uint(numbers[1]), barrier);
    else
      push_quad(to, numbers, barrier);
  }
}

// Waits for all messages of a kind. The wait acquires for the threads of the block alone, which is enough for bytes in
// its own shared memory. Acquired for the cluster, it would empty the L1 cache each time.
template <typename Team> NSA_DEVICE void await(const DecodeMemory<Team> &memory, int32 message) {
  if constexpr (Team::kCluster == 1)
    meet<Team>();
  else
    barrier_wait(shared_address(memory.barrier(message)), 0);
}

// The maximum of a head over the keys of the block. `sum` becomes the sum of its weights, if it is asked for.
template <typename Team>
NSA_DEVICE float add_parts(const DecodeMemory<Team> &memory, int32 branch, int32 head, float scale, float *sum) {
  float top = -infinity();
#pragma unroll
  for (int32 of = 0; of < Team::kKeyWarps; ++of)
    top = max_number(top, memory.part(branch, of, head)[0]);
  if (sum) {
    *sum = 0;
#pragma unroll
    for (int32 of = 0; of < Team::kKeyWarps; ++of) {
      const float *part = memory.part(branch, of, head);
      *sum = fmaf(part[1], exp2_approx((part[0] - (top == -infinity() ? 0 : top)) * scale), *sum);
    }
  }
  return top;
}

// Sends maxima and sums of a branch to all blocks. Behind it all warps of the team have attended the branch.
template <typename Team>
NSA_DEVICE void push_softmax(const DecodeAttention<Team> &attention, const DecodeMemory<Team> &memory, int32 rank,
                             int32 branch, int32 message) {
  using Product = typename Team::Product;
  const WarpPlace<Team> &at = attention.at;
#pragma unroll
  for (int32 head = 0; head < Product::kThreadHeads; ++head) {
    float sum = attention.state.l[head];
#pragma unroll
    for (int32 distance = Product::kNearest; distance <= Product::kFurthest; distance *= 2)
      sum += shuffle_xor(sum, distance);
    if (at.column_warp == 0 && at.first_of_heads()) {
      float *part = memory.part(branch, at.key_warp, at.head(head));
      part[0] = attention.state.m[head];
      part[1] = sum;
    }
  }
  meet<Team>();
#pragma unroll 1
  for (int32 i = Team::thread(); i < Team::kCluster * Team::kGroup; i += Team::kThreads) {
    const int32 head = i % Team::kGroup;
    float numbers[2];
    numbers[0] = add_parts(memory, branch, head, attention.scale, &numbers[1]);
    send(memory, message, i / Team::kGroup, memory.softmax(branch, rank, head), numbers);
  }
}

// Adds up the results of the warps in the memory of the branch's last pieces, and sends the sums, each to the block
// that adds up what the blocks have. push_softmax comes before it. Then the warps give the pieces back.
template <typename Team>
NSA_DEVICE void push_partials(DecodeAttention<Team> &attention, const DecodeMemory<Team> &memory, int32 rank,
                              int32 branch, int32 message) {
  using Product = typename Team::Product;
  constexpr int32 kQuads = Team::kMergeColumns / 4;
  const WarpPlace<Team> &at = attention.at;
  const int32 holders = attention.holders(); // 0 in a block without keys of the branch, which sends zeros
  const bool attends = attention.attends();
  float *own = reinterpret_cast<float *>(attention.own_memory());
  if (attends)
#pragma unroll
    for (int32 head = 0; head < Product::kThreadHeads; ++head) {
      const float top = add_parts(memory, branch, at.head(head), attention.scale, nullptr);
      const float factor = exp2_approx((attention.state.m[head] - (top == -infinity() ? 0 : top)) * attention.scale);
#pragma unroll
      for (int32 tile = 0; tile < DecodeState<Team>::kTiles; ++tile)
#pragma unroll
        for (int32 item = 0; item < 2; ++item)
          attention.state.o[tile][Product::element(head, item)] *= factor;
    }
#pragma unroll 1
  for (int32 first = 0; first < Team::kVDim; first += Team::kMergeColumns) {
    if (first > 0)
      meet<Team>(); // all have read the columns before
    if (attends)
#pragma unroll
      for (int32 tile = 0; tile < DecodeState<Team>::kTiles; ++tile) {
        const int32 column = at.first_column + tile * Product::kItems - first;
        if (Team::kMergeColumns < Team::kVPad && (column < 0 || column >= Team::kMergeColumns))
          continue;
        Product::store(own + column, Team::kMergePitch, attention.state.o[tile], at.lane, at.first_head,
                       at.first_head + Product::kHeads, Product::kItems);
      }
    meet<Team>();
#pragma unroll 1
    for (int32 i = Team::thread(); i < Team::kGroup * kQuads; i += Team::kThreads) {
      const int32 head = i / kQuads;
      const int32 column = i % kQuads * 4;
      if (first + column >= Team::kVDim)
        continue;
      float sum[4] = {};
#pragma unroll
      for (int32 of = 0; of < Team::kKeyWarps; ++of) {
        if (of >= holders)
          break;
        const float *row =
            reinterpret_cast<const float *>(attention.piece_memory(of)) + head * Team::kMergePitch + column;
        const Chunk quad = *reinterpret_cast<const Chunk *>(row);
#pragma unroll
        for (int32 j = 0; j < 4; ++j)
          sum[j] += __uint_as_float(quad.words[j]);
      }
      const int32 element = head * Team::kVDim + first + column;
      send(memory, message, element / Team::kSlice, memory.partials(branch, rank) + element % Team::kSlice, sum);
    }
  }
  meet<Team>(); // all have read the last columns
  if constexpr (Team::kQkDim < Team::kQkPad) {
#pragma unroll 1
    for (int32 of = 0; of < holders; ++of)
      clear_padding<Team>(attention.piece_memory(of), kPieceKeys);
    meet<Team>();
  }
  attention.release();
}

// Adds up the maxima and sums that the blocks sent of a branch. In the place of the maximum that a block sent comes the
// factor of its result. A head without weight has the result 0. `use(head, lse)` gets the log-sum-exp in base 2 of each
// head, in one thread.
//
// Neighbouring lanes hold what the blocks sent of one head. Lanes without a block hold nothing.
template <typename Team, typename Use>
NSA_DEVICE void make_factors(const DecodeMemory<Team> &memory, int32 branch, float scale, const Use &use) {
  constexpr int32 kLanes = Team::kRankLanes;
  const int32 rank = Team::thread() % kLanes;
  const bool exists = rank < Team::kCluster;
#pragma unroll 1
  for (int32 first = 0; first < Team::kGroup; first += Team::kThreads / kLanes) {
    const int32 head = first + Team::thread() / kLanes;
    float *part = memory.softmax(branch, min(rank, Team::kCluster - 1), min(head, Team::kGroup - 1));
    const float own = exists ? part[0] : -infinity();
    float top = own;
#pragma unroll
    for (int32 distance = 1; distance < kLanes; distance *= 2)
      top = max_number(top, shuffle_xor(top, distance));
    const float weight = exp2_approx((own - (top == -infinity() ? 0 : top)) * scale);
    float sum = exists ? part[1] * weight : 0;
#pragma unroll
    for (int32 distance = 1; distance < kLanes; distance *= 2)
      sum += shuffle_xor(sum, distance);
    if (head >= Team::kGroup || !exists)
      continue;
    part[0] = sum == 0 ? 0 : weight * reciprocal_approx(sum);
    // A sum that is NaN counts as weight.
    if (rank == 0)
      use(head, sum == 0 ? -infinity() : top * scale + log2_approx(sum));
  }
  meet<Team>();
}

} // namespace nsa
