// How a warpgroup of attention on sm_90a writes its 64 rows: the results, their log-sum-exps, and the number of keys
// that were read for the rows.
#pragma once

#include "copy.cuh"
#include "sm90/attention_shape.cuh"
#include "sm90/ptx_opaque.cuh"

namespace nsa {

// Writes the thread's part of one row of results. The row must begin at a multiple of 16 bytes. All lanes of the warp
// call store_row, even if their row does not exist, because the lanes exchange pairs of columns.
template <typename Element, int32 kCount>
NSA_DEVICE void store_row(Element *target, bool exists, const float (&o)[kCount], int32 half) {
  constexpr int32 kTiles = kCount / 4;
  const auto pair = [&](int32 tile) { return Pair<Element>::make(o[4 * tile + 2 * half], o[4 * tile + 2 * half + 1]); };
  const int32 lane = static_cast<int32>(threadIdx.x) % 4;
  Element *quads = target + lane % 2 * kTileColumns + lane / 2 * 4;
#pragma unroll
  for (int32 tile = 0; tile + 1 < kTiles; tile += 2) {
    const Quad<Element> quad = exchange(pair(tile), pair(tile + 1));
    if (exists)
      *reinterpret_cast<Quad<Element> *>(quads + tile * kTileColumns) = quad;
  }
  if constexpr (kTiles % 2 != 0)
    store_pair(target + fragment_column(threadIdx.x, kTiles - 1, 0), pair(kTiles - 1), exists ? 2 : 0, true);
}

// Writes the thread's part of its two rows element by element. The code of store_elements is rarely executed, but it is
// compiled at each cold start. The loop of store_elements is not unrolled, to keep its code short. Registers cannot be
// indexed at run time, so each iteration of the loop rotates the column tiles in the registers by one.
template <typename Element, int32 kCount>
NSA_DEVICE void store_elements(Element *const (&targets)[2], const bool (&exists)[2], float (&o)[kCount]) {
#pragma unroll 1
  for (int32 tile = 0; tile < kCount / 4; ++tile) {
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
      store_pair(targets[half] + fragment_column(threadIdx.x, tile, 0),
                 Pair<Element>::make(o[2 * half], o[2 * half + 1]), exists[half] ? 2 : 0, false);
#pragma unroll
    for (int32 i = 4; i < kCount; ++i)
      o[i - 4] = o[i];
  }
}

// Writes the warpgroup's part of the results of a work item: 64 rows of outputs, log-sum-exps and numbers of keys. A
// row without weights (all its scores are -inf) has the result 0 and the log-sum-exp -inf.
template <typename Shape, typename Arguments, int32 kCount>
NSA_DEVICE void store_result(const Arguments &args, const WorkItem &item, const SoftmaxRows &softmax,
                             float (&o)[kCount]) {
  using Facts = typename Shape::Facts;
  using Element = typename Shape::Element;
  // The thread's number is made opaque to the compiler: otherwise the compiler would compute everything that depends
  // only on this number before the loop over items, and keep it in registers.
  const int32 thread = opaque(static_cast<int32>(threadIdx.x) - 128);
  float sum[2];
#pragma unroll
  for (int32 half = 0; half < 2; ++half) {
    sum[half] = softmax.row_sum(half);
    scale_row(o, half, sum[half] == 0 ? 0.0f : 1 / sum[half]);
  }
  int32 rows[2];
  bool exists[2];
  Element *targets[2];
#pragma unroll
  for (int32 half = 0; half < 2; ++half) {
    const int32 row = item.first_row + thread / 128 * 64 + fragment_row(thread % 128, 1, 0, half);
    const int32 time = item.first_time + row / Facts::kGroup;
    const int32 head = item.kv_head * Facts::kGroup + row % Facts::kGroup;
    rows[half] = row;
    exists[half] = row < item.rows;
    targets[half] = args.out.data + args.out.at(item.q_entry, time, head).offset;
  }
  if (args.out.rows_aligned()) {
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
      store_row(targets[half], exists[half], o, half);
  } else {
    store_elements(targets, exists, o);
  }
#pragma unroll
  for (int32 half = 0; half < 2; ++half) {
    const int32 row = rows[half];
    if (!exists[half] || thread % 4 != 0)
      continue;
    const int32 time = item.first_time + row / Facts::kGroup;
    if (args.lse.present()) {
      constexpr float kLn2 = 0.693147181f;
      const float lse = sum[half] == 0 ? -infinity() : (log2_approx(sum[half]) - softmax.minus_reference[half]) * kLn2;
      const int32 head = item.kv_head * Facts::kGroup + row % Facts::kGroup;
      args.lse.data[args.lse.at(item.q_entry, time, head).offset] = lse;
    }
    // Writes how many keys of the work item each query attended. All heads of a group attend the same keys, so only the
    // row of the group's first head writes the number of keys.
    if (args.reads.present() && row % Facts::kGroup == 0) {
      const int32 past = past_visible_key<Facts>(item.earlier + row / Facts::kGroup);
      const int32 first = Facts::kWindowed ? past - args.window : 0;
      args.reads.data[args.reads.at(item.q_entry, time, item.kv_head).offset] =
          max(min(past, item.past_key) - max(first, item.first_key), 0);
    }
  }
}

} // namespace nsa
