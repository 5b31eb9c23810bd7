// Definitions that the producer and the consumers of attention on sm_90a (templates/cuda/sm90/attention.cu) share: the
// sizes of tiles, the layout of the block's shared memory with its barriers, and the division of an item's keys into
// tiles.
//
// The template parameter Facts describes the attention kernel. Facts has the members that work_items.cuh asks for, and
// Element, kQkDim, kVDim, kWarpgroups, kKeyTile and kStages.
#pragma once

#include "sm90/barrier_ring.cuh"
#include "sm90/descriptor.cuh"
#include "sm90/ptx_barrier.cuh"
#include "sm90/ptx_cluster.cuh"
#include "sm90/ptx_tma.cuh"
#include "sm90/score_tile.cuh"
#include "sm90/wild_values.cuh"
#include "sm90/work_items.cuh"

namespace nsa {

extern __shared__ __align__(1024) unsigned char attention_memory[];

template <typename Facts_> struct AttentionShape {
  using Facts = Facts_;
  using Element = typename Facts::Element;
  static constexpr int32 kRows = Facts::kRows;
  static constexpr int32 kCluster = Facts::kCluster;
  static constexpr int32 kWarpgroups = Facts::kWarpgroups;
  static constexpr int32 kKeyTile = Facts::kKeyTile;
  static constexpr int32 kStages = Facts::kStages;

  static constexpr int32 kSwizzle = kSwizzle128;
  static constexpr int32 kChunkColumns = chunk_columns(kSwizzle, sizeof(Element));
  static constexpr int32 kQkChunks = chunk_count(Facts::kQkDim, kSwizzle, sizeof(Element));
  static constexpr int32 kVChunks = chunk_count(Facts::kVDim, kSwizzle, sizeof(Element));
  static constexpr int32 kQkSteps = (Facts::kQkDim + kWgmmaDepth - 1) / kWgmmaDepth;
  static constexpr int32 kKeySteps = kKeyTile / kWgmmaDepth;

  // Boxes of the tensor maps. A tensor map's box of queries holds the 64 rows of a warpgroup. A tensor map's box of
  // keys or values holds the part of a tile that one block of the cluster loads.
  static constexpr int32 kBoxHeads = Facts::kGroup < 64 ? Facts::kGroup : 64;
  static constexpr int32 kBoxKeys = kKeyTile / kCluster;
  static_assert(64 % kBoxHeads == 0, "a box of queries holds whole queries or whole parts of a group");
  static_assert(kKeyTile % kWgmmaDepth == 0, "weights come in steps of 16 keys");
  static_assert(kBoxKeys % kAtomRows == 0, "each block's share of a tile is whole atoms");

  static constexpr int32 kQBytes = kQkChunks * chunk_bytes(64, kSwizzle); // the queries of one warpgroup
  static constexpr int32 kKBytes = kQkChunks * chunk_bytes(kKeyTile, kSwizzle);
  static constexpr int32 kVBytes = kVChunks * chunk_bytes(kKeyTile, kSwizzle);

  static constexpr int32 kConsumerWarps = 4 * kWarpgroups;
  static constexpr int32 kInspectors = 3;

  // The block needs four work items at the same time: the item whose results are written, the item whose scores are
  // turned into weights, the item whose keys are loaded, and the next item.
  static constexpr int32 kItemSlots = 4;

  // The offsets in bytes of the tiles and of the Tail in the block's shared memory. Tiles in shared memory begin at
  // multiples of the size of an atom.
  static constexpr int32 kQ = 0;
  static constexpr int32 kK = kQ + kWarpgroups * kQBytes;
  static constexpr int32 kV = kK + kStages * kKBytes;
  static constexpr int32 kTail = kV + kStages * kVBytes;

  // The part of shared memory after the tiles: barriers and work items.
  struct Tail {
    uint64 q_full[kWarpgroups];
    uint64 q_empty[kWarpgroups];
    uint64 k_full[kStages];
    uint64 k_empty[kStages];
    uint64 v_full[kStages];
    uint64 v_empty[kStages];
    uint64 v_seen[kStages]; // the inspectors have looked at an edge tile
    uint64 item_full[kItemSlots];
    uint64 item_empty[kItemSlots];
    uint32 wild[kStages][kInspectors]; // whether this inspector found Inf or NaN in the edge tile of this stage
    WorkItem items[kItemSlots];
  };
  static_assert(sizeof(Tail) <= 1024, "the header of the template counts 1024 bytes for it");

  using Values = ValueTile<Element, kKeyTile, kVChunks>;

  // memory() returns the 32-bit address of the block's dynamic shared memory, as PTX instructions take it. tail() and
  // values() return parts of the block's dynamic shared memory.
  NSA_DEVICE static uint32 memory() { return shared_address(attention_memory); }
  NSA_DEVICE static Tail &tail() { return *reinterpret_cast<Tail *>(attention_memory + kTail); }
  NSA_DEVICE static Values values(int32 stage) { return {attention_memory + kV + stage * kVBytes}; }

  // Initialises all barriers. One thread of the block calls make_barriers.
  NSA_DEVICE static void make_barriers() {
    Tail &t = tail();
    constexpr int32 kReaders = kConsumerWarps * kCluster;
    for (int32 warpgroup = 0; warpgroup < kWarpgroups; ++warpgroup) {
      make(t.q_full[warpgroup], 1);
      make(t.q_empty[warpgroup], 4);
    }
    for (int32 stage = 0; stage < kStages; ++stage) {
      make(t.k_full[stage], 1);
      make(t.k_empty[stage], kReaders);
      make(t.v_full[stage], 1);
      make(t.v_empty[stage], kReaders + kInspectors * kCluster);
      make(t.v_seen[stage], kInspectors);
    }
    for (int32 slot = 0; slot < kItemSlots; ++slot) {
      make(t.item_full[slot], 1);
      make(t.item_empty[slot], kConsumerWarps + kInspectors);
    }
    fence_barrier_init();
  }

private:
  NSA_DEVICE static void make(const uint64 &barrier, int32 arrivals) {
    barrier_init(shared_address(&barrier), arrivals);
  }
};

// KeyTiles divides the keys of a work item into tiles. The first tile begins at the first key of the work item. A loop
// over the tiles begins with the last tile.
template <typename Shape> struct KeyTiles {
  using Facts = typename Shape::Facts;
  int32 first_key;
  int32 count;
  // `common` is the range of keys that all rows of the block attend. Tiles first_plain to past_plain - 1 hold only keys
  // that all rows of the block attend.
  KeyRange common;
  int32 first_plain;
  int32 past_plain;

  NSA_DEVICE KeyTiles(const WorkItem &item, int32 window) : first_key(item.first_key) {
    count = (max(item.past_key - item.first_key, 0) + Shape::kKeyTile - 1) / Shape::kKeyTile;
    const int32 last_row = min(item.first_row + Shape::kRows, item.rows) - 1;
    const int32 last_past = past_visible_key<Facts>(item.earlier + last_row / Facts::kGroup);
    common.first = Facts::kWindowed ? last_past - window : 0;
    common.past = past_visible_key<Facts>(item.earlier + item.first_row / Facts::kGroup);
    if constexpr (Facts::kKeyOffset)
      common.past = min(common.past, item.past_key);
    // The differences common.first - first_key and common.past - first_key may be negative, and integer division rounds
    // a negative number towards 0. Rounding towards 0 does not change the result of is_edge(), because tiles are
    // numbered from 0. If first_plain is 0 or negative, the condition tile < first_plain holds for no tile. If
    // past_plain is 0 or negative, the condition tile >= past_plain holds for every tile.
    first_plain = (common.first - first_key + Shape::kKeyTile - 1) / Shape::kKeyTile;
    past_plain = (common.past - first_key) / Shape::kKeyTile;
  }

  // The first key of a tile.
  NSA_DEVICE int32 key(int32 tile) const { return first_key + tile * Shape::kKeyTile; }

  // Returns whether the tile holds a key that some row may not attend.
  NSA_DEVICE bool is_edge(int32 tile) const { return tile >= past_plain || (Facts::kWindowed && tile < first_plain); }
};

// leave() releases a stage of a ring for the whole warp. A warp calls leave() after its last read of the stage and
// after its last matrix product with the stage. leave() makes one arrival at the barrier of each block of the cluster,
// because the blocks of a cluster share the loads of a stage.
template <typename Shape> NSA_DEVICE void leave(const uint64 &barrier) {
  const uint32 lane = threadIdx.x % kWarpSize;
  if constexpr (Shape::kCluster == 1) {
    if (lane == 0)
      barrier_arrive(shared_address(&barrier));
  } else {
    if (lane < Shape::kCluster)
      barrier_arrive_cluster(cluster_address(shared_address(&barrier), lane));
  }
}

// leave_own() makes one arrival for the whole warp at a barrier of the warp's own block. leave_own() synchronises the
// warp before the arrival, so all earlier memory accesses of all lanes of the warp come before the arrival.
NSA_DEVICE void leave_own(const uint64 &barrier) {
  __syncwarp();
  if (threadIdx.x % kWarpSize == 0)
    barrier_arrive(shared_address(&barrier));
}

// Waits for a work item. The work item stays in shared memory until all warps that use it have released it. A warp can
// therefore read a field of the work item at its use, and need not keep the field in registers.
template <typename Shape> NSA_DEVICE const WorkItem &await_item(RingPlace<Shape::kItemSlots> place) {
  barrier_wait(shared_address(&Shape::tail().item_full[place.stage()]), place.full_parity());
  return Shape::tail().items[place.stage()];
}
// Releases a work item for the whole warp, so that the producer can reuse the memory of the work item.
template <typename Shape> NSA_DEVICE void leave_item(RingPlace<Shape::kItemSlots> &place) {
  leave_own(Shape::tail().item_empty[place.stage()]);
  place.advance();
}

} // namespace nsa
