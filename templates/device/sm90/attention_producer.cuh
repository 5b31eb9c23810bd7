// The producer warpgroup of attention on sm_90a: the first warpgroup of the block, which loads data for the other
// warpgroups. One warp of the producer warpgroup determines the work items of the block and starts the copies of their
// queries, keys and values. The other three warps of the producer warpgroup look for Inf and NaN in the values of keys
// that some row may not attend (wild_values.cuh).
#pragma once

#include "copy.cuh"
#include "sm90/attention_copier.cuh"
#include "sm90/attention_shape.cuh"

namespace nsa {

// Loads the queries, keys and values of work items. AttentionLoader runs on one thread of the producer warp. If one of
// the tensors has no tensor map, all threads of the producer warp run AttentionLoader and copy the tensors themselves.
template <typename Shape, typename Arguments> class AttentionLoader {
public:
  using Facts = typename Shape::Facts;

  NSA_DEVICE AttentionLoader(const Arguments &args, bool mapped, int32 rank) : args(args), mapped(mapped), rank(rank) {}

  // Loads the queries, keys and values of an item, in the order in which the consumers wait for them. The caller calls
  // load() twice for each item, first with `part` = 0 and then with `part` = 1. The call with `part` = 0 loads the
  // queries, and about as many tiles of keys and values as fit into the rings of shared memory. The second call loads
  // the remaining tiles of keys and values. In the second call of load(), each load of a tile waits until the consumer
  // warps release a stage of the ring.
  NSA_DEVICE void load(const WorkItem &item, int32 part) {
    const KeyTiles<Shape> tiles(item, args.window);
    const int32 rest = max(tiles.count - Shape::kStages, 0);
    if (part == 0) {
      keys(item, tiles.key(tiles.count - 1));
      queries(item);
    }
    const int32 past = part == 0 ? tiles.count : rest;
    const int32 first = part == 0 ? rest : 0;
#pragma unroll 1
    for (int32 tile = past - 1; tile >= first; --tile) {
      if (tile > 0)
        keys(item, tiles.key(tile - 1));
      values(item, tiles.key(tile));
    }
  }

  // Fetches the queries of the next item into L2. The queries of the next item cannot be loaded into shared memory yet,
  // because the consumers still read the queries of the current item.
  NSA_DEVICE void prefetch(const WorkItem &item) const {
    if (!mapped)
      return;
#pragma unroll 1
    for (int32 warpgroup = 0; warpgroup < Shape::kWarpgroups; ++warpgroup) {
      const Rows rows(item, warpgroup);
#pragma unroll
      for (int32 chunk = 0; chunk < Shape::kQkChunks; ++chunk)
        tma_prefetch(args.q_map, chunk * Shape::kChunkColumns, rows.head, rows.time, item.q_entry);
    }
  }

private:
  // The head coordinate and the time coordinate, in the tensor of queries, of a warpgroup's first row.
  struct Rows {
    int32 head;
    int32 time;
    NSA_DEVICE Rows(const WorkItem &item, int32 warpgroup) {
      const int32 row = item.first_row + 64 * warpgroup;
      head = item.kv_head * Facts::kGroup + row % Facts::kGroup;
      time = item.first_time + row / Facts::kGroup;
    }
  };

  // Each of queries(), keys() and values() waits until the current stage of its ring is empty, starts the load into it,
  // and advances to the next stage.
  NSA_DEVICE void queries(const WorkItem &item) {
#pragma unroll 1
    for (int32 warpgroup = 0; warpgroup < Shape::kWarpgroups; ++warpgroup) {
      const uint64 &full = Shape::tail().q_full[warpgroup];
      const int32 target = Shape::kQ + warpgroup * Shape::kQBytes;
      barrier_wait(shared_address(&Shape::tail().q_empty[warpgroup]), q.empty_parity());
      if (mapped) {
        const Rows rows(item, warpgroup);
        barrier_arrive_expect(shared_address(&full), Shape::kQBytes);
#pragma unroll
        for (int32 chunk = 0; chunk < Shape::kQkChunks; ++chunk)
          tma_load(Shape::memory() + target + chunk * chunk_bytes(64, Shape::kSwizzle), args.q_map,
                   shared_address(&full), chunk * Shape::kChunkColumns, rows.head, rows.time, item.q_entry);
      } else {
        copy_queries<Shape>(args, item, warpgroup, attention_memory + target);
        copied(full);
      }
    }
    q.advance();
  }

  NSA_DEVICE void keys(const WorkItem &item, int32 key) {
    tile<Facts::kQkDim>(args.k_map, args.k, item, key, Shape::kK + k.stage() * Shape::kKBytes,
                        Shape::tail().k_full[k.stage()], Shape::tail().k_empty[k.stage()], k.empty_parity());
    k.advance();
  }
  NSA_DEVICE void values(const WorkItem &item, int32 key) {
    tile<Facts::kVDim>(args.v_map, args.v, item, key, Shape::kV + v.stage() * Shape::kVBytes,
                       Shape::tail().v_full[v.stage()], Shape::tail().v_empty[v.stage()], v.empty_parity());
    v.advance();
  }

  template <int32 kColumns, typename Tensor>
  NSA_DEVICE void tile(const TensorMap &map, const Tensor &view, const WorkItem &item, int32 key, int32 target,
                       const uint64 &full, const uint64 &empty, int32 parity) const {
    constexpr int32 kChunks = chunk_count(kColumns, Shape::kSwizzle, sizeof(typename Shape::Element));
    barrier_wait(shared_address(&empty), parity);
    if (mapped) {
      barrier_arrive_expect(shared_address(&full), kChunks * chunk_bytes(Shape::kKeyTile, Shape::kSwizzle));
      const int32 share = rank * Shape::kBoxKeys;
      const uint32 first = Shape::memory() + target + chunk_bytes(share, Shape::kSwizzle);
      const int32 time = item.k_begin + key + share;
#pragma unroll
      for (int32 chunk = 0; chunk < kChunks; ++chunk) {
        const uint32 place = first + chunk * chunk_bytes(Shape::kKeyTile, Shape::kSwizzle);
        const int32 column = chunk * Shape::kChunkColumns;
        if constexpr (Shape::kCluster == 1)
          tma_load(place, map, shared_address(&full), column, item.kv_head, time, item.k_entry);
        else
          tma_multicast(place, map, shared_address(&full), (1 << Shape::kCluster) - 1, column, item.kv_head, time,
                        item.k_entry);
      }
    } else {
      copy_tile<Shape, kColumns>(view, item, key, attention_memory + target);
      copied(full);
    }
  }

  const Arguments &args;
  bool mapped;
  int32 rank;
  RingPlace<1> q;
  RingPlace<Shape::kStages> k, v;
};

// Writes the results of an item whose rows attend no key: the output is 0 and the log-sum-exp is -inf. store_nothing
// must be fast: work items without keys come last, so no later work of the block hides the time of these writes.
// Therefore all lanes of the warp share the writes of store_nothing.
template <typename Shape, typename Arguments>
NSA_DEVICE void store_nothing(const Arguments &args, const WorkItem &item) {
  using Facts = typename Shape::Facts;
  using Element = typename Shape::Element;
  constexpr int32 kPieceElements = 16 / static_cast<int32>(sizeof(Element));
  constexpr int32 kPieces = Facts::kVDim / kPieceElements;
  const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
  const int32 rows = min(Shape::kRows, item.rows - item.first_row);
  const auto time_of = [&](int32 row) { return item.first_time + (item.first_row + row) / Facts::kGroup; };
  const auto head_of = [&](int32 row) { return item.kv_head * Facts::kGroup + (item.first_row + row) % Facts::kGroup; };
#pragma unroll 2
  for (int32 index = lane; index < rows * kPieces; index += kWarpSize) {
    const int32 row = index / kPieces;
    const int32 column = index % kPieces * kPieceElements;
    Element *target = args.out.data + args.out.at(item.q_entry, time_of(row), head_of(row)).offset + column;
    if (args.out.rows_aligned())
      *reinterpret_cast<Chunk *>(target) = Chunk{};
    else
#pragma unroll 1
      for (int32 i = 0; i < kPieceElements; ++i)
        target[i] = Element{};
  }
#pragma unroll 1
  for (int32 row = lane; row < rows; row += kWarpSize) {
    if (args.lse.present())
      args.lse.data[args.lse.at(item.q_entry, time_of(row), head_of(row)).offset] = -infinity();
    if (args.reads.present() && (item.first_row + row) % Facts::kGroup == 0)
      args.reads.data[args.reads.at(item.q_entry, time_of(row), item.kv_head).offset] = 0;
  }
}

// The producer warp determines the work items, writes them to shared memory for the other warps, and loads their data.
// If no row of a work item attends a key, the producer warp itself writes the results of the item and does not pass the
// item on. Consumer warps and inspector warps get only work items in which some row attends a key. After the last work
// item the producer warp passes on an item without rows, which tells consumer warps and inspector warps to stop.
template <typename Shape, typename Arguments> NSA_DEVICE void produce_attention(const Arguments &args) {
  const bool mapped = is_present(args.q_map) && is_present(args.k_map) && is_present(args.v_map);
  const int32 rank = Shape::kCluster == 1 ? 0 : static_cast<int32>(cluster_rank());
  const bool leader = elect_lane();
  const bool loads = leader || !mapped;
  WorkOrder<typename Shape::Facts, Arguments> order(args);
  AttentionLoader<Shape, Arguments> loader(args, mapped, rank);
  auto place = RingPlace<Shape::kItemSlots>::before_first();
  // Work items are stored in shared memory, so that other warps can read them and the producer warp needs no registers
  // for them. The producer warp determines the next item while the first tiles of the current item are being loaded.
  // Every cold start compiles the producer's loop, so the code of each step occurs in it only once.
  bool held = false;
  bool more = true;
  while (more) {
    const WorkItem &item = Shape::tail().items[place.stage()];
#pragma unroll 1
    for (int32 part = 0; part < 2; ++part) {
      if (held && loads)
        loader.load(item, part);
      __syncwarp();
      if (part != 0)
        continue;
      WorkItem next;
      while (true) {
        next = order.next(rank);
        if (next.rows == 0 || next.past_key > next.first_key)
          break;
        store_nothing<Shape>(args, next);
      }
      more = next.rows > 0;
      if (leader) {
        const RingPlace<Shape::kItemSlots> after = place.next();
        barrier_wait(shared_address(&Shape::tail().item_empty[after.stage()]), after.empty_parity());
        Shape::tail().items[after.stage()] = next;
        barrier_arrive(shared_address(&Shape::tail().item_full[after.stage()]));
        if (more && held)
          loader.prefetch(next);
      }
      __syncwarp();
    }
    place.advance();
    held = true;
  }
}

// An edge tile is a tile of keys and values that contains a key that some row of the block may not attend. The
// inspector warps search the values of each edge tile for Inf and NaN, and report to the consumer warps whether the
// edge tile contains Inf or NaN. The inspector warps release the ring stage of each tile of values, even if they did
// not search the tile.
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
        const int32 expired = Shape::Facts::kWindowed ? min(max(tiles.common.first - key, 0), kKeyTile) : 0;
        const int32 future = max(min(tiles.common.past - key, kKeyTile), expired);
        const bool early = Shape::Facts::kWindowed && finds_wild(Shape::values(v.stage()), 0, expired, lane, kLanes);
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
