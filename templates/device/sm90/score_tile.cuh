// What a warpgroup does with its 64 rows of scores between two products: masks, the online softmax in base 2 (Milakov
// and Gimelshein, arXiv 1805.02867), weights as the left operand of the next product.
// A thread holds rows `half` 0 and 1 of the fragment layout: s[4 * tile + 2 * half + index] (ptx_wgmma.cuh).
#pragma once

#include "layout.cuh"
#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"

namespace nsa {

// The row of a thread within its warpgroup's 64.
NSA_DEVICE int32 warpgroup_row(int32 half) { return fragment_row(threadIdx.x % 128, 1, 0, half); }

// The keys [first, past) that a row attends, and those that all rows of a warp do.
struct KeyRange {
  int32 first;
  int32 past;
};

// -inf for keys outside of the thread's rows' ranges. Sixteen columns that the whole warp attends are passed over.
template <int32 kCount>
NSA_DEVICE void mask_scores(float (&s)[kCount], int32 first_key, const KeyRange (&rows)[2], KeyRange warp) {
  const int32 lane_key = first_key + static_cast<int32>(threadIdx.x) % 4 * 2;
  const int32 first[2] = {rows[0].first - lane_key, rows[1].first - lane_key};
  const int32 past[2] = {rows[0].past - lane_key, rows[1].past - lane_key};
#pragma unroll
  for (int32 step = 0; step < kCount / 8; ++step) {
    if (warp.first <= first_key + step * 16 && first_key + step * 16 + 16 <= warp.past)
      continue;
#pragma unroll
    for (int32 i = 0; i < 8; ++i) {
      const int32 column = step * 16 + i / 4 * kTileColumns + i % 2;
      const int32 half = i / 2 % 2;
      s[step * 8 + i] = column >= first[half] && column < past[half] ? s[step * 8 + i] : -infinity();
    }
  }
}

// Of each of the two rows: the maximum and this thread's part of the sum.
struct SoftmaxRows {
  float m[2] = {-infinity(), -infinity()};
  float l[2] = {0, 0};

  // Scores become weights; `decay` is what earlier sums and results shrink by. A row that met no allowed key yet has
  // the maximum -inf; its weights are taken against 0 instead, and are 0. The greatest weight is 1, which no rounding
  // changes: a maximum that may grow a little before it is followed costs a twentieth of accuracy, more where few
  // keys have most of the weight (docs/hopper_attention.md).
  // `shrinks` tells of each of the thread's rows whether it, or the same of another lane, shrinks. The sums take part
  // in the vote, where they change nothing (a result that is NaN may shrink), so that the compiler must weigh before it
  // and cannot wait for a product in between.
  template <int32 kCount>
  NSA_DEVICE void weigh(float (&s)[kCount], float (&decay)[2], bool (&shrinks)[2], float scale_log2) {
    float top[2][2] = {{max_number(m[0], s[0]), s[1]}, {max_number(m[1], s[2]), s[3]}};
#pragma unroll
    for (int32 tile = 1; tile < kCount / 4; ++tile)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
#pragma unroll
        for (int32 index = 0; index < 2; ++index)
          top[half][index] = max_number(top[half][index], s[4 * tile + 2 * half + index]);
    float m_minus[2];
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      float next = max_number(top[half][0], top[half][1]);
      next = max_number(next, shuffle_xor(next, 1));
      next = max_number(next, shuffle_xor(next, 2));
      m_minus[half] = next == -infinity() ? 0.0f : -next * scale_log2;
      // Rounded products must not make a maximum that stays shrink.
      decay[half] = next == m[half] ? 1.0f : exp2_approx(fmaf(m[half], scale_log2, m_minus[half]));
      m[half] = next;
    }
    float sum[2][2] = {};
#pragma unroll
    for (int32 tile = 0; tile < kCount / 4; ++tile)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
#pragma unroll
        for (int32 index = 0; index < 2; ++index) {
          float &x = s[4 * tile + 2 * half + index];
          x = exp2_approx(fmaf(x, scale_log2, m_minus[half]));
          sum[half][index] += x;
        }
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      l[half] = fmaf(l[half], decay[half], sum[half][0] + sum[half][1]);
      shrinks[half] = any_lane(decay[half] != 1 || !(l[half] >= 0));
    }
  }

  // The whole row's sum, the same in its four lanes.
  NSA_DEVICE float row_sum(int32 half) const {
    float sum = l[half];
    sum += shuffle_xor(sum, 1);
    return sum + shuffle_xor(sum, 2);
  }
};

// Weights, rounded, as left operands: a step of 16 keys each.
template <typename T, int32 kSteps>
NSA_DEVICE void round_weights(uint32 (&p)[kSteps][4], const float (&s)[kSteps * 8]) {
#pragma unroll
  for (int32 step = 0; step < kSteps; ++step)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      p[step][i] = Pair<T>::make(s[step * 8 + 2 * i], s[step * 8 + 2 * i + 1]).bits;
}

template <int32 kCount> NSA_DEVICE void scale_row(float (&o)[kCount], int32 half, float factor) {
#pragma unroll
  for (int32 tile = 0; tile < kCount / 4; ++tile)
#pragma unroll
    for (int32 index = 0; index < 2; ++index)
      o[4 * tile + 2 * half + index] *= factor;
}

} // namespace nsa
