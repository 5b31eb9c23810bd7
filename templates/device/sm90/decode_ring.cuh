// The ring of shared memory through which all keys and values of a team pass, in tiles of kKeyTile keys. The tiles make
// one stream: first the compressed keys of the block, then its part of the window, then its selected blocks. Of these a
// team has the branches that it attends. Loaders fill the ring (decode_loader.cuh), over the ends of the branches too.
#pragma once

#include "sm90/decode_rows.cuh"
#include "sm90/ptx_barrier.cuh"

namespace nsa {

// The numbered barriers of a block, beside that of all threads.
enum DecodeBarrier : int32 {
  kMainMeets = 1,
  kWindowMeets,
  kListMade,
  kQueriesCome,
  kWindowAdded,
};

// All threads of the team that attend meet.
template <typename Team> NSA_DEVICE void meet() {
  named_barrier_sync(Team::kIsWindow ? kWindowMeets : kMainMeets, Team::kThreads);
}

// The main team says that the list is in shared memory, and its loaders wait for it.
template <typename Team> inline constexpr int32 kListParties = Team::kThreads + Team::kLoaders * kWarpSize;
template <typename Team> NSA_DEVICE void announce_list() { named_barrier_arrive(kListMade, kListParties<Team>); }
template <typename Team> NSA_DEVICE void await_list() { named_barrier_sync(kListMade, kListParties<Team>); }

// The clerk says that the gates are in shared memory. All teams meet when their queries are there, and wait for the
// gates too.
template <typename Shape> inline constexpr int32 kQueryParties = Shape::kAttendingThreads + kWarpSize;
template <typename Shape> NSA_DEVICE void announce_gates() { named_barrier_arrive(kQueriesCome, kQueryParties<Shape>); }
template <typename Shape> NSA_DEVICE void await_queries() { named_barrier_sync(kQueriesCome, kQueryParties<Shape>); }

// The window's team says that its weighted result is in shared memory, and the main team waits for it.
template <typename Shape> NSA_DEVICE void announce_window() {
  named_barrier_arrive(kWindowAdded, Shape::kAttendingThreads);
}
template <typename Shape> NSA_DEVICE void await_window() { named_barrier_sync(kWindowAdded, Shape::kAttendingThreads); }

// The stage of a tile, and the parity of the stage's turn.
template <typename Team> struct RingPlace {
  NSA_DEVICE void advance() {
    const bool wraps = stage + 1 == Team::kStages;
    stage = wraps ? 0 : stage + 1;
    parity ^= wraps ? 1 : 0;
  }

  int32 stage = 0;
  int32 parity = 0;
};

template <typename Team> struct DecodeRing {
  static constexpr int32 kTile = Team::kKeyTile;

  NSA_DEVICE DecodeRing(const DecodePlace &place, const DecodeMemory<Team> &memory) : place(place), memory(memory) {
    if constexpr (Team::kReadsCompressed) {
      cmp_tiles = (place.past_key - place.first_key + kTile - 1) / kTile;
      fresh_row = place.uses_fresh() ? place.fresh_key - place.first_key : -1;
    }
    if constexpr (Team::attends(kWin))
      win_tiles = (place.past_token - place.first_token + kTile - 1) / kTile;
    if (Team::attends(kSel) && !place.ranks)
      add_selected();
  }

  // The list of selected blocks is known, and so is the rest of the stream. Every kCluster-th block of the list is the
  // block's own. Without a choice the list has all blocks, and is not stored.
  NSA_DEVICE void add_selected() {
    const int32 entries = (place.listed - place.rank + Team::kCluster - 1) / Team::kCluster;
    sel_keys = max(entries, 0) * Team::Facts::kSelBlock;
  }

  NSA_DEVICE int32 sel_tiles() const { return (sel_keys + kTile - 1) / kTile; }
  NSA_DEVICE int32 tiles() const { return cmp_tiles + win_tiles + sel_tiles(); }

  // Waits until a tile of compressed keys, or of other keys, is in shared memory.
  NSA_DEVICE void take(const RingPlace<Team> &at, bool is_compressed, int32 tile) const {
    barrier_wait(shared_address(memory.full(at.stage)), at.parity);
    const int32 row = fresh_row - tile * kTile;
    if (is_compressed && row >= 0 && row < kTile) {
      place_fresh(row, at.stage);
      meet<Team>();
    }
  }

  // The warp has read the tile. Each warp says so, and the stage is free when all have.
  NSA_DEVICE void give_back(const RingPlace<Team> &at) const {
    __syncwarp();
    if (threadIdx.x % kWarpSize == 0)
      barrier_arrive(shared_address(memory.empty(at.stage)));
  }

  // The selection block in a place of the list.
  NSA_DEVICE int32 listed_block(int32 entry) const { return place.ranks ? memory.list()[entry] : entry; }

  // The token of a key of the selected part.
  NSA_DEVICE int32 selected_token(int32 key) const {
    const int32 entry = key / Team::Facts::kSelBlock * Team::kCluster + place.rank;
    return listed_block(entry) * Team::Facts::kSelBlock + key % Team::Facts::kSelBlock;
  }

  const DecodePlace &place;
  const DecodeMemory<Team> memory;
  int32 cmp_tiles = 0;
  int32 win_tiles = 0;
  int32 sel_keys = 0;
  int32 fresh_row = -1; // the new compressed row in the stream, or -1

private:
  // Copies the compressed row that this step made into its tile.
  NSA_DEVICE void place_fresh(int32 row, int32 stage) const {
    constexpr int32 kKChunks = Team::kQkDim * 2 / kChunkBytes;
    constexpr int32 kChunks = kKChunks + Team::kVDim * 2 / kChunkBytes;
    const Chunk *fresh = reinterpret_cast<const Chunk *>(memory.fresh());
    const bool attended = Team::kHasCmp && place.fresh_key >= place.attended_key;
#pragma unroll 1
    for (int32 chunk = Team::thread(); chunk < kChunks; chunk += Team::kThreads) {
      if (chunk < kKChunks)
        reinterpret_cast<Chunk *>(memory.keys(stage) + row * Team::kKPitch)[chunk] = fresh[chunk];
      else
        reinterpret_cast<Chunk *>(memory.values(stage) + row * Team::kVPitch)[chunk - kKChunks] =
            attended ? fresh[chunk] : Chunk{};
    }
  }
};

} // namespace nsa
