// Loads for attention on sm_90a where a tensor has no map, because its rows do not lie as the copy engine wants them: a
// whole warp copies element by element to where a map's boxes would have come. Slow, but it serves.
#pragma once

#include "sm90/attention_shape.cuh"

namespace nsa {

// One warp; in the place of AttentionLoader. Blocks of a cluster each copy all rows for themselves.
template <typename Shape, typename Arguments> class AttentionCopier {
public:
  using Facts = typename Shape::Facts;
  using Element = typename Shape::Element;
  static constexpr bool kWholeWarp = true;

  NSA_DEVICE AttentionCopier(const Arguments &args, int32) : args(args) {}

  NSA_DEVICE void begin(const WorkItem &item) { queries(item); }

  // Consumers ask for a tile's keys before the last one's values; they have rings of their own, so any order will do.
  NSA_DEVICE void finish(const WorkItem &item) {
    const KeyTiles<Shape> tiles(item, args.window);
#pragma unroll 1
    for (int32 tile = tiles.count - 1; tile >= 0; --tile) {
      keys(item, tiles.key(tile));
      values(item, tiles.key(tile));
    }
  }

  NSA_DEVICE void prefetch(const WorkItem &) const {}

private:
  NSA_DEVICE void queries(const WorkItem &item) {
#pragma unroll 1
    for (int32 warpgroup = 0; warpgroup < Shape::kWarpgroups; ++warpgroup) {
      unsigned char *target =
          attention_memory + Shape::kQ + (q.stage() * Shape::kWarpgroups + warpgroup) * Shape::kQBytes;
      barrier_wait(shared_address(&Shape::tail().q_empty[q.stage()][warpgroup]), q.empty_parity());
#pragma unroll 1
      for (int32 row = 0; row < 64; ++row) {
        const int32 of_item = item.first_row + 64 * warpgroup + row;
        const Element *from = args.q.data + args.q
                                                .at(item.q_entry, item.first_time + of_item / Facts::kGroup,
                                                    item.kv_head * Facts::kGroup + of_item % Facts::kGroup)
                                                .offset;
        copy_row<Facts::kQkDim, Shape::kQkChunks, 64>(target, row, from, of_item < item.rows);
      }
      written(Shape::tail().q_full[q.stage()][warpgroup]);
    }
    q.advance();
  }

  NSA_DEVICE void keys(const WorkItem &item, int32 key) {
    tile<Facts::kQkDim, Shape::kQkChunks>(args.k, item, key, attention_memory + Shape::kK + k.stage() * Shape::kKBytes,
                                          Shape::tail().k_full[k.stage()], Shape::tail().k_empty[k.stage()],
                                          k.empty_parity());
    k.advance();
  }
  NSA_DEVICE void values(const WorkItem &item, int32 key) {
    tile<Facts::kVDim, Shape::kVChunks>(args.v, item, key, attention_memory + Shape::kV + v.stage() * Shape::kVBytes,
                                        Shape::tail().v_full[v.stage()], Shape::tail().v_empty[v.stage()],
                                        v.empty_parity());
    v.advance();
  }

  template <int32 kColumns, int32 kChunks>
  NSA_DEVICE void tile(const View<Element, 3> &view, const WorkItem &item, int32 key, unsigned char *target,
                       const uint64 &full, const uint64 &empty, int32 parity) const {
    barrier_wait(shared_address(&empty), parity);
    const Element *from = view.data + view.at(item.k_entry, item.k_begin + key, item.kv_head).offset;
#pragma unroll 1
    for (int32 row = 0; row < Shape::kKeyTile; ++row) {
      copy_row<kColumns, kChunks, Shape::kKeyTile>(target, row, from, key + row < item.past_key);
      from += view.strides[1];
    }
    written(full);
  }

  // A row of a chunked tile of so many rows; zeros where there is none, and past its columns.
  template <int32 kColumns, int32 kChunks, int32 kRows>
  NSA_DEVICE static void copy_row(unsigned char *target, int32 row, const Element *from, bool exists) {
#pragma unroll 1
    for (int32 column = static_cast<int32>(threadIdx.x) % kWarpSize; column < kChunks * Shape::kChunkColumns;
         column += kWarpSize) {
      Element *place = reinterpret_cast<Element *>(
          target + chunked_offset(row, column, kRows, Shape::kSwizzle, static_cast<int32>(sizeof(Element))));
      *place = exists && column < kColumns ? from[column] : Element{};
    }
  }

  // What generic stores have written is the matrix units' from here on.
  NSA_DEVICE static void written(const uint64 &full) {
    fence_async();
    leave_own(full);
  }

  const Arguments &args;
  RingPlace<Shape::kQueryStages> q;
  RingPlace<Shape::kStages> k, v;
};

} // namespace nsa
