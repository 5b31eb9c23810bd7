// What a step of decode writes: the branches added up over the blocks of the cluster and weighted with their gates, and
// the optional results of single branches.
#pragma once

#include "sm90/decode_exchange.cuh"

namespace nsa {

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

// Makes the weights of the branches of each head: the given numbers, or the sigmoid of each, or one softmax over all
// three. The softmax counts the gate of a branch that is off too. One warp does it for all heads.
template <typename Team, typename Arguments>
NSA_DEVICE void make_gates(const Arguments &args, const DecodePlace &place, const DecodeMemory<Team> &memory) {
  using Facts = typename Team::Facts;
#pragma unroll 1
  for (int32 head = threadIdx.x % kWarpSize; head < Team::kGroup; head += kWarpSize) {
    const int32 row = Facts::kGatePerGroup ? place.kv_head : place.kv_head * Team::kGroup + head;
    float x[kDecodeBranches];
#pragma unroll
    for (int32 branch = 0; branch < kDecodeBranches; ++branch)
      x[branch] = to_float(args.gates.data[args.gates.at(place.q_entry, place.q_time, row, branch).offset]);
    const float top = max_number(max_number(x[0], x[1]), x[2]);
    float sum = 0;
#pragma unroll
    for (int32 branch = 0; branch < kDecodeBranches; ++branch)
      sum += exp2_approx((x[branch] - top) * kLog2E);
#pragma unroll
    for (int32 branch = 0; branch < kDecodeBranches; ++branch) {
      float gate = x[branch];
      if constexpr (Facts::kSoftmaxGates != 0)
        gate = exp2_approx((gate - top) * kLog2E) * reciprocal_approx(sum);
      else if constexpr (Facts::kSigmoidGates != 0)
        gate = reciprocal_approx(1 + exp2_approx(gate * -kLog2E));
      memory.floats(Team::kGatesAt)[branch * Team::kHeads + head] = gate;
    }
  }
}

template <typename Team, typename Arguments> struct DecodeResult {
  using T = typename Team::Element;

  // Adds the weighted results of a branch to the team's slice, which is kept in shared memory in the place of what the
  // first block of the cluster sent of the team's branch `kFirst`. The last branch is not kept there but written, with
  // the slice of the window's team, if there is one.
  template <int32 kBranch, int32 kFirst, bool kLast> NSA_DEVICE void add(const View<T, 3> &single) const {
    float *slice = memory.partials(kFirst, 0);
#pragma unroll 1
    for (int32 i = Team::thread(); i < slice_size<Team>(place.rank); i += Team::kThreads) {
      const int32 element = place.rank * Team::kSlice + i;
      const int32 head = element / Team::kVDim;
      float value = 0;
#pragma unroll
      for (int32 rank = 0; rank < Team::kCluster; ++rank)
        value = fmaf(memory.softmax(kBranch, rank, head)[0], memory.partials(kBranch, rank)[i], value);
      store(single, element, value);
      float before = kBranch == kFirst ? 0 : slice[i];
      if constexpr (kLast && Team::kHasWindowTeam)
        before += memory.partials(kWin, 0)[i];
      const float total = fmaf(value, memory.floats(Team::kGatesAt)[kBranch * Team::kHeads + head], before);
      if constexpr (kLast)
        store(args.out, element, total);
      else
        slice[i] = total;
    }
  }

  // The first block of the cluster writes the log-sum-exps, which are given in base 2.
  NSA_DEVICE void store_lse(const View<float, 3> &lse, int32 head, float value) const {
    if (place.rank == 0 && lse.present())
      *row_address(lse, place.q_entry, place.q_time, place.kv_head * Team::kGroup + head) = value * kLn2;
  }

  // A warp of the last block of the cluster writes the list in ascending order, and the number of keys that were
  // attended.
  NSA_DEVICE void store_list(const DecodeRing<Team> &ring) const {
    if (place.rank != Team::kCluster - 1)
      return;
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    const auto listed = [&](int32 entry) { return ring.listed_block(entry); };
    if constexpr (Team::kHasSel) {
      if (args.block_list.present())
#pragma unroll 1
        for (int32 i = lane; i < Team::Facts::kSelCount; i += kWarpSize) {
          const int32 block = i < place.listed ? listed(i) : -1;
          int32 slot = i < place.listed ? 0 : i;
          for (int32 other = 0; i < place.listed && other < place.listed; ++other)
            slot += listed(other) < block;
          args.block_list.set(args.block_list.at(place.q_entry, place.q_time, place.kv_head, slot).offset, block);
        }
    }
    if (!args.reads.present())
      return;
    int32 read = 0;
#pragma unroll 1
    for (int32 i = lane; i < place.listed; i += kWarpSize)
      read += min(place.position + 1 - listed(i) * Team::Facts::kSelBlock, int32{Team::Facts::kSelBlock});
#pragma unroll
    for (int32 distance = 1; distance < kWarpSize; distance *= 2)
      read += shuffle_xor(read, distance);
    read += (Team::kHasCmp ? place.visible : 0) + (Team::kHasWin ? min(args.window, place.position + 1) : 0);
    if (lane == 0)
      *row_address(args.reads, place.q_entry, place.q_time, place.kv_head) = read;
  }

  const Arguments &args;
  const DecodePlace &place;
  const DecodeMemory<Team> memory;

private:
  NSA_DEVICE void store(const View<T, 3> &target, int32 element, float value) const {
    if (!target.present())
      return;
    const int32 head = place.kv_head * Team::kGroup + element / Team::kVDim;
    row_address(target, place.q_entry, place.q_time, head)[element % Team::kVDim] = to<T>(value);
  }
};

} // namespace nsa
