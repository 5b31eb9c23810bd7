// What a warpgroup does with its 64 rows of scores between two matrix products: it masks the scores, computes the
// online softmax in base 2 (Milakov and Gimelshein, arXiv 1805.02867), and rounds the weights to the 16-bit left
// operand of the next product. A thread holds scores of two rows, which are `half` 0 and `half` 1 of the fragment
// layout (layout.cuh). In each of its rows and in each column tile, a thread holds two neighbouring scores: s[4 * tile
// + 2 * half + index], where `index` is 0 or 1.
#pragma once

#include "layout.cuh"
#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"

namespace nsa {

// Returns the number, 0 to 63, of one of the two rows that the thread holds. `half`, 0 or 1, chooses between the two
// rows.
NSA_DEVICE int32 warpgroup_row(int32 half) { return fragment_row(threadIdx.x % 128, 1, 0, half); }

// A range of keys [first, past): the keys that a row attends, or the keys that all rows of a warp attend.
struct KeyRange {
  int32 first;
  int32 past;
};

// In each row, replaces the scores of all keys outside of the row's range by -inf. mask_scores skips a step of sixteen
// keys if all rows of the warp attend all sixteen keys.
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

// The state of the online softmax for the two rows of a thread.
//
// The exponent of a weight is the score minus the greatest score of the row in the same tile of keys, not minus the
// greatest score of the row so far. Therefore the greatest weight of a row in a tile is 1, and rounding a weight of 1
// to 16 bits causes no error. Most of the rounding error of a softmax comes from the rounding of its greatest weights.
// Subtracting the maximum of the tile gives a rounding error that is 0.35 to 7 % smaller than subtracting the maximum
// of the row so far (docs/lab/hopper_attention.md).
//
// Because each tile of keys has another maximum, the sums over earlier tiles are rescaled at every tile. The reference
// of a tile is the number that is subtracted from its scores. If the maximum of a tile is more than kReach (in base 2)
// below the row's maximum, the reference is the row's maximum minus kReach, so that sums and results stay in range. A
// weight of the newest tile is at most 1. After rescaling, a weight of an earlier tile is at most 2^kReach = 4.
struct SoftmaxRows {
  static constexpr float kReach = 2;
  static constexpr float kNoKey = 3.402823466e38f; // of a row that has met no allowed key: its weights are 0

  // minus_max is the negated maximum of each row, and minus_reference is the negated reference. minus_max and
  // minus_reference are in base 2: a weight is 2^(score * scale_log2 + minus_reference).
  float minus_max[2] = {kNoKey, kNoKey};
  float minus_reference[2] = {kNoKey, kNoKey};
  float l[2] = {0, 0}; // this thread's part of the sum

  // Replaces the scores `s` by softmax weights. The caller of weigh() must multiply its sums over earlier tiles by
  // `rescale`.
  template <int32 kCount> NSA_DEVICE void weigh(float (&s)[kCount], float (&rescale)[2], float scale_log2) {
    float top[2][2] = {{s[0], s[1]}, {s[2], s[3]}};
#pragma unroll
    for (int32 tile = 1; tile < kCount / 4; ++tile)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
#pragma unroll
        for (int32 index = 0; index < 2; ++index)
          top[half][index] = max_number(top[half][index], s[4 * tile + 2 * half + index]);
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      float greatest = max_number(top[half][0], top[half][1]);
      greatest = max_number(greatest, shuffle_xor(greatest, 1));
      greatest = max_number(greatest, shuffle_xor(greatest, 2));
      const float minus_greatest = -greatest * scale_log2;
      minus_max[half] = min_number(minus_max[half], minus_greatest);
      const float next = min_number(minus_greatest, minus_max[half] + kReach);
      rescale[half] = exp2_approx(next - minus_reference[half]);
      minus_reference[half] = next;
    }
    float sum[2][2];
#pragma unroll
    for (int32 tile = 0; tile < kCount / 4; ++tile)
#pragma unroll
      for (int32 half = 0; half < 2; ++half)
#pragma unroll
        for (int32 index = 0; index < 2; ++index) {
          float &x = s[4 * tile + 2 * half + index];
          x = exp2_approx(fmaf(x, scale_log2, minus_reference[half]));
          sum[half][index] = tile == 0 ? x : sum[half][index] + x;
        }
#pragma unroll
    for (int32 half = 0; half < 2; ++half) {
      l[half] = fmaf(l[half], rescale[half], sum[half][0] + sum[half][1]);
      // Each lane reads its own value in this shuffle, so the shuffle does not change l[half]. The shuffle only fixes
      // the order of instructions: its operand depends on all weights, so the compiler computes all weights before the
      // shuffle. Without the shuffle, the compiler could move the wait for the running matrix product to a place
      // between the computations of two weights.
      l[half] = shuffle(l[half], static_cast<int32>(threadIdx.x));
    }
  }

  // Returns the sum of the weights of a whole row. The four lanes that hold a row get the same sum.
  NSA_DEVICE float row_sum(int32 half) const {
    float sum = l[half];
    sum += shuffle_xor(sum, 1);
    return sum + shuffle_xor(sum, 2);
  }
};

// Rounds the weights to 16 bits and packs them as left operands of wgmma. One wgmma instruction multiplies the weights
// of 16 keys.
template <typename T, int32 kSteps>
NSA_DEVICE void round_weights(uint32 (&p)[kSteps][4], const float (&s)[kSteps * 8]) {
#pragma unroll
  for (int32 step = 0; step < kSteps; ++step)
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      p[step][i] = Pair<T>::make(s[step * 8 + 2 * i], s[step * 8 + 2 * i + 1]).bits;
}

// Multiplies one row of a result by a factor.
template <int32 kCount> NSA_DEVICE void scale_row(float (&o)[kCount], int32 half, float factor) {
#pragma unroll
  for (int32 tile = 0; tile < kCount / 4; ++tile)
#pragma unroll
    for (int32 index = 0; index < 2; ++index)
      o[4 * tile + 2 * half + index] *= factor;
}

} // namespace nsa
