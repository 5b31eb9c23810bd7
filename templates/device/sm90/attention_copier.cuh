// Copies queries, keys and values to shared memory without the copy engine, for attention on sm_90a. The functions of
// attention_copier.cuh serve tensors that have no tensor map because the copy engine cannot address their rows. A whole
// warp copies element by element to the shared-memory addresses to which the copy engine would have written. A copy
// without a tensor map is slow, but the results are right.
#pragma once

#include "sm90/attention_shape.cuh"

namespace nsa {

// Copies one row into a chunked tile of kRows rows. If the row does not exist, all elements of the tile's row become
// zero. Columns of the tile from column kColumns on become zero in every row.
template <typename Shape, int32 kColumns, int32 kRows>
NSA_DEVICE void copy_row(unsigned char *target, int32 row, const typename Shape::Element *from, bool exists) {
  using Element = typename Shape::Element;
  constexpr int32 kWidth = chunk_count(kColumns, Shape::kSwizzle, sizeof(Element)) * Shape::kChunkColumns;
#pragma unroll 1
  for (int32 column = static_cast<int32>(threadIdx.x) % kWarpSize; column < kWidth; column += kWarpSize) {
    Element *place = reinterpret_cast<Element *>(
        target + chunked_offset(row, column, kRows, Shape::kSwizzle, static_cast<int32>(sizeof(Element))));
    *place = exists && column < kColumns ? from[column] : Element{};
  }
}

// Copies the 64 rows of queries of one warpgroup to shared memory.
template <typename Shape, typename Arguments>
NSA_DEVICE void copy_queries(const Arguments &args, const WorkItem &item, int32 warpgroup, unsigned char *target) {
  using Facts = typename Shape::Facts;
#pragma unroll 1
  for (int32 row = 0; row < 64; ++row) {
    const int32 of_item = item.first_row + 64 * warpgroup + row;
    const int32 time = item.first_time + of_item / Facts::kGroup;
    const int32 head = item.kv_head * Facts::kGroup + of_item % Facts::kGroup;
    copy_row<Shape, Facts::kQkDim, 64>(target, row, args.q.data + args.q.at(item.q_entry, time, head).offset,
                                       of_item < item.rows);
  }
}

// Copies a tile of keys or values to shared memory. The tile begins at key number `key`.
template <typename Shape, int32 kColumns, typename Tensor>
NSA_DEVICE void copy_tile(const Tensor &view, const WorkItem &item, int32 key, unsigned char *target) {
  const auto *from = view.data + view.at(item.k_entry, item.k_begin + key, item.kv_head).offset;
#pragma unroll 1
  for (int32 row = 0; row < Shape::kKeyTile; ++row) {
    copy_row<Shape, kColumns, Shape::kKeyTile>(target, row, from, key + row < item.past_key);
    from += view.strides[1];
  }
}

// Makes the copied data visible to the matrix units and tells the consumers that the stage of the ring is full.
NSA_DEVICE void copied(const uint64 &full) {
  fence_async();
  leave_own(full);
}

} // namespace nsa
