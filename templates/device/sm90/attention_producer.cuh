// The first warpgroup of attention on sm_90a: one warp finds the block's items and has the copy engine load what they
// need; three look at the values of keys that some row may not attend (wild_values.cuh).
#pragma once

#include "copy.cuh"
#include "sm90/attention_copier.cuh"
#include "sm90/attention_shape.cuh"

namespace nsa {

// One thread.
template <typename Shape, typename Arguments> class AttentionLoader {
public:
  using Facts = typename Shape::Facts;
  static constexpr bool kWholeWarp = false;

  NSA_DEVICE AttentionLoader(const Arguments &args, int32 rank) : args(args), rank(rank) {}

  // What the item's first scores need.
  NSA_DEVICE void begin(const WorkItem &item) {
    const KeyTiles<Shape> tiles(item, args.window);
    keys(item, tiles.key(tiles.count - 1));
    queries(item);
  }

  // All else, in the order in which consumers ask.
  NSA_DEVICE void finish(const WorkItem &item) {
    const KeyTiles<Shape> tiles(item, args.window);
    for (int32 tile = tiles.count - 1; tile >= 0; --tile) {
      if (tile > 0)
        keys(item, tiles.key(tile - 1));
      values(item, tiles.key(tile));
    }
  }

  // Queries that cannot be loaded before the last ones are done with come to L2 meanwhile.
  NSA_DEVICE void prefetch(const WorkItem &item) const {
    if constexpr (Shape::kQueryStages == 1)
#pragma unroll 1
      for (int32 warpgroup = 0; warpgroup < Shape::kWarpgroups; ++warpgroup) {
        const Rows rows(item, warpgroup);
#pragma unroll
        for (int32 chunk = 0; chunk < Shape::kQkChunks; ++chunk)
          tma_prefetch(args.q_map, chunk * Shape::kChunkColumns, rows.head, rows.time, item.q_entry);
      }
  }

private:
  // Of a warpgroup.
  struct Rows {
    int32 head;
    int32 time;
    NSA_DEVICE Rows(const WorkItem &item, int32 warpgroup) {
      const int32 row = item.first_row + 64 * warpgroup;
      head = item.kv_head * Facts::kGroup + row % Facts::kGroup;
      time = item.first_time + row / Facts::kGroup;
    }
  };

  NSA_DEVICE void queries(const WorkItem &item) {
#pragma unroll 1
    for (int32 warpgroup = 0; warpgroup < Shape::kWarpgroups; ++warpgroup) {
      const uint32 full = shared_address(&Shape::tail().q_full[q.stage()][warpgroup]);
      const uint32 target = Shape::memory() + Shape::kQ + (q.stage() * Shape::kWarpgroups + warpgroup) * Shape::kQBytes;
      const Rows rows(item, warpgroup);
      barrier_wait(shared_address(&Shape::tail().q_empty[q.stage()][warpgroup]), q.empty_parity());
      barrier_arrive_expect(full, Shape::kQBytes);
#pragma unroll
      for (int32 chunk = 0; chunk < Shape::kQkChunks; ++chunk)
        tma_load(target + chunk * chunk_bytes(64, Shape::kSwizzle), args.q_map, full, chunk * Shape::kChunkColumns,
                 rows.head, rows.time, item.q_entry);
    }
    q.advance();
  }

  NSA_DEVICE void keys(const WorkItem &item, int32 key) {
    tile<Shape::kQkChunks>(args.k_map, item, key, Shape::memory() + Shape::kK + k.stage() * Shape::kKBytes,
                           shared_address(&Shape::tail().k_full[k.stage()]),
                           shared_address(&Shape::tail().k_empty[k.stage()]), k.empty_parity());
    k.advance();
  }
  NSA_DEVICE void values(const WorkItem &item, int32 key) {
    tile<Shape::kVChunks>(args.v_map, item, key, Shape::memory() + Shape::kV + v.stage() * Shape::kVBytes,
                          shared_address(&Shape::tail().v_full[v.stage()]),
                          shared_address(&Shape::tail().v_empty[v.stage()]), v.empty_parity());
    v.advance();
  }

  // A tile of keys or values. Each block of a cluster loads its share of the rows, for all of them.
  template <int32 kChunks>
  NSA_DEVICE void tile(const TensorMap &map, const WorkItem &item, int32 key, uint32 target, uint32 full, uint32 empty,
                       int32 parity) const {
    if constexpr (Shape::kCluster == 1)
      barrier_wait(empty, parity);
    else
      barrier_wait_cluster(empty, parity);
    barrier_arrive_expect(full, kChunks * chunk_bytes(Shape::kKeyTile, Shape::kSwizzle));
    const int32 share = rank * Shape::kBoxKeys;
#pragma unroll
    for (int32 chunk = 0; chunk < kChunks; ++chunk) {
      const uint32 place =
          target + chunk * chunk_bytes(Shape::kKeyTile, Shape::kSwizzle) + chunk_bytes(share, Shape::kSwizzle);
      const int32 column = chunk * Shape::kChunkColumns;
      const int32 time = item.k_begin + key + share;
      if constexpr (Shape::kCluster == 1)
        tma_load(place, map, full, column, item.kv_head, time, item.k_entry);
      else
        tma_multicast(place, map, full, (1 << Shape::kCluster) - 1, column, item.kv_head, time, item.k_entry);
    }
  }

  const Arguments &args;
  int32 rank;
  RingPlace<Shape::kQueryStages> q;
  RingPlace<Shape::kStages> k, v;
};

// Results of rows that see no key: 0, and the log-sum-exp -inf. A whole warp.
template <typename Shape, typename Arguments>
NSA_DEVICE void store_nothing(const Arguments &args, const WorkItem &item) {
  using Facts = typename Shape::Facts;
  using Element = typename Shape::Element;
  constexpr int32 kPiece = 16 / static_cast<int32>(sizeof(Element));
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  const int32 past = min(item.first_row + Shape::kRows, item.rows);
#pragma unroll 1
  for (int32 row = item.first_row; row < past; ++row) {
    const int32 time = item.first_time + row / Facts::kGroup;
    const int32 head = item.kv_head * Facts::kGroup + row % Facts::kGroup;
    Element *target = args.out.data + args.out.at(item.q_entry, time, head).offset;
    if (args.out.rows_aligned()) {
#pragma unroll 1
      for (int32 column = lane * kPiece; column < Facts::kVDim; column += kWarpSize * kPiece)
        *reinterpret_cast<Chunk *>(target + column) = Chunk{};
    } else {
#pragma unroll 1
      for (int32 column = lane; column < Facts::kVDim; column += kWarpSize)
        target[column] = Element{};
    }
    if (lane == 0 && args.lse.present())
      args.lse.data[args.lse.at(item.q_entry, time, head).offset] = -infinity();
    if (lane == 0 && args.reads.present() && row % Facts::kGroup == 0)
      args.reads.data[args.reads.at(item.q_entry, time, item.kv_head).offset] = 0;
  }
}

// One warp. Others get only items that have keys, and last one without rows.
template <typename Shape, typename Loader, typename Arguments>
NSA_DEVICE void produce_attention(const Arguments &args) {
  const int32 rank = Shape::kCluster == 1 ? 0 : static_cast<int32>(cluster_rank());
  const bool leader = elect_lane();
  const bool loads = Loader::kWholeWarp || leader;
  WorkOrder<typename Shape::Facts, Arguments> order(args);
  Loader loader(args, rank);
  RingPlace<Shape::kItemSlots> place;
  const auto next_item = [&] {
    WorkItem item = order.next(rank);
    while (item.rows > 0 && item.past_key <= item.first_key) {
      store_nothing<Shape>(args, item);
      item = order.next(rank);
    }
    return item;
  };
  // Items stand in shared memory for the others and, so that registers suffice, for this warp.
  const auto post = [&](const WorkItem &item) {
    barrier_wait(shared_address(&Shape::tail().item_empty[place.stage()]), place.empty_parity());
    Shape::tail().items[place.stage()] = item;
    barrier_arrive(shared_address(&Shape::tail().item_full[place.stage()]));
  };
  WorkItem next = next_item();
  if (leader)
    post(next);
  __syncwarp();
  while (next.rows > 0) {
    const WorkItem &item = Shape::tail().items[place.stage()];
    if (loads)
      loader.begin(item);
    __syncwarp();
    place.advance();
    next = next_item();
    if (leader)
      post(next);
    if (loads) {
      if (next.rows > 0)
        loader.prefetch(next);
      loader.finish(item);
    }
    __syncwarp();
  }
}

// Three warps.
template <typename Shape, typename Arguments> NSA_DEVICE void inspect_values(const Arguments &args) {
  const int32 lane = static_cast<int32>(threadIdx.x) - kWarpSize;
  constexpr int32 kLanes = Shape::kInspectors * kWarpSize;
  constexpr int32 kKeyTile = Shape::kKeyTile;
  typename Shape::Tail &tail = Shape::tail();
  RingPlace<Shape::kItemSlots> place;
  RingPlace<Shape::kStages> v;
  while (true) {
    const WorkItem &item = await_item<Shape>(place);
    if (item.rows == 0)
      return;
    const KeyTiles<Shape> tiles(item, args.window);
    for (int32 tile = tiles.count - 1; tile >= 0; --tile) {
      barrier_wait(shared_address(&tail.v_full[v.stage()]), v.full_parity());
      if (tiles.is_edge(tile)) {
        const int32 key = tiles.key(tile);
        const int32 expired = min(max(tiles.common.first - key, 0), kKeyTile);
        const int32 future = max(min(tiles.common.past - key, kKeyTile), expired);
        const bool early = finds_wild(Shape::values(v.stage()), 0, expired, lane, kLanes);
        const bool late = finds_wild(Shape::values(v.stage()), future, kKeyTile, lane, kLanes);
        const bool wild = any_lane(early || late);
        if (lane % kWarpSize == 0)
          tail.wild[v.stage()][lane / kWarpSize] = wild;
        leave_own(tail.v_seen[v.stage()]);
      }
      __syncwarp();
      leave<Shape>(tail.v_empty[v.stage()]);
      v.advance();
    }
    leave_item<Shape>(place);
  }
}

} // namespace nsa
