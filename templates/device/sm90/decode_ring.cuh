// The ring of shared memory through which all keys and values of a block pass, in tiles of kKeyTile keys. The tiles
// make one stream: first the compressed keys of the block, then its part of the window, then its selected blocks.
// Loaders fill the ring (decode_loader.cuh), over the ends of the branches too.
#pragma once

#include "sm90/decode_rows.cuh"
#include "sm90/ptx_barrier.cuh"

namespace nsa {

// All threads that attend meet.
template <typename Shape> NSA_DEVICE void meet() { named_barrier_sync(1, Shape::kThreads); }

// The threads that attend say that the list is in shared memory, and the loaders wait for it.
template <typename Shape> inline constexpr int32 kListParties = Shape::kThreads + Shape::kLoaders * kWarpSize;
template <typename Shape> NSA_DEVICE void announce_list() { named_barrier_arrive(2, kListParties<Shape>); }
template <typename Shape> NSA_DEVICE void await_list() { named_barrier_sync(2, kListParties<Shape>); }

// The stage of a tile, and the parity of the stage's turn.
template <typename Shape> struct RingPlace {
  NSA_DEVICE void advance() {
    const bool wraps = stage + 1 == Shape::kStages;
    stage = wraps ? 0 : stage + 1;
    parity ^= wraps ? 1 : 0;
  }

  int32 stage = 0;
  int32 parity = 0;
};

template <typename Shape> struct DecodeRing {
  static constexpr int32 kTile = Shape::kKeyTile;

  NSA_DEVICE DecodeRing(const DecodePlace &place, const DecodeMemory<Shape> &memory) : place(place), memory(memory) {
    cmp_tiles = (place.past_key - place.first_key + kTile - 1) / kTile;
    win_tiles = (place.past_token - place.first_token + kTile - 1) / kTile;
    fresh_row = place.uses_fresh() ? place.fresh_key - place.first_key : -1;
    if (!place.ranks)
      add_selected();
  }

  // The list of selected blocks is known, and so is the rest of the stream. Every kCluster-th block of the list is the
  // block's own. Without a choice the list has all blocks, and is not stored.
  NSA_DEVICE void add_selected() {
    const int32 entries = (place.listed - place.rank + Shape::kCluster - 1) / Shape::kCluster;
    sel_keys = max(entries, 0) * Shape::Facts::kSelBlock;
  }

  NSA_DEVICE int32 sel_tiles() const { return (sel_keys + kTile - 1) / kTile; }
  NSA_DEVICE int32 tiles() const { return cmp_tiles + win_tiles + sel_tiles(); }

  // Waits until a tile of compressed keys, or of other keys, is in shared memory.
  NSA_DEVICE void take(const RingPlace<Shape> &at, bool is_compressed, int32 tile) const {
    barrier_wait(shared_address(memory.full(at.stage)), at.parity);
    const int32 row = fresh_row - tile * kTile;
    if (is_compressed && row >= 0 && row < kTile) {
      place_fresh(row, at.stage);
      meet<Shape>();
    }
  }

  // The warp has read the tile. Each warp says so, and the stage is free when all have.
  NSA_DEVICE void give_back(const RingPlace<Shape> &at) const {
    __syncwarp();
    if (threadIdx.x % kWarpSize == 0)
      barrier_arrive(shared_address(memory.empty(at.stage)));
  }

  // The selection block in a place of the list.
  NSA_DEVICE int32 listed_block(int32 entry) const { return place.ranks ? memory.list()[entry] : entry; }

  // The token of a key of the selected part.
  NSA_DEVICE int32 selected_token(int32 key) const {
    const int32 entry = key / Shape::Facts::kSelBlock * Shape::kCluster + place.rank;
    return listed_block(entry) * Shape::Facts::kSelBlock + key % Shape::Facts::kSelBlock;
  }

  const DecodePlace &place;
  const DecodeMemory<Shape> memory;
  int32 cmp_tiles;
  int32 win_tiles;
  int32 sel_keys = 0;
  int32 fresh_row; // the new compressed row in the stream, or -1

private:
  // Copies the compressed row that this step made into its tile.
  NSA_DEVICE void place_fresh(int32 row, int32 stage) const {
    constexpr int32 kKChunks = Shape::kQkDim * 2 / kChunkBytes;
    constexpr int32 kChunks = kKChunks + Shape::kVDim * 2 / kChunkBytes;
    const Chunk *fresh = reinterpret_cast<const Chunk *>(memory.fresh());
    const bool attended = Shape::kHasCmp && place.fresh_key >= place.attended_key;
#pragma unroll 1
    for (int32 chunk = threadIdx.x; chunk < kChunks; chunk += Shape::kThreads) {
      if (chunk < kKChunks)
        reinterpret_cast<Chunk *>(memory.keys(stage) + row * Shape::kKPitch)[chunk] = fresh[chunk];
      else
        reinterpret_cast<Chunk *>(memory.values(stage) + row * Shape::kVPitch)[chunk - kKChunks] =
            attended ? fresh[chunk] : Chunk{};
    }
  }
};

} // namespace nsa
