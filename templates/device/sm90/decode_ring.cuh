// The ring of shared memory through which all keys and values of a team pass, in pieces of kPieceKeys keys. The pieces
// make one stream: first the compressed keys of the block, then its part of the window, then its selected blocks. Of
// these a team has the branches that it attends. Loaders fill the ring (decode_loader.cuh), over the ends of the
// branches too.
#pragma once

#include "sm90/decode_rows.cuh"
#include "sm90/ptx_barrier.cuh"

namespace nsa {

// The numbered barriers of a block.
enum DecodeBarrier : int32 {
  kBegins = 0,
  kMainMeets,
  kWindowMeets,
  kListMade,
  kQueriesCome,
  kWindowAdded,
  kFreshMade,
  kBegun,
};

// All threads of the team that attend meet.
template <typename Team> NSA_DEVICE void meet() {
  named_barrier_sync(Team::kIsWindow ? kWindowMeets : kMainMeets, Team::kThreads);
}

// The main team says that the list is in shared memory, and its loaders wait for it.
template <typename Team> inline constexpr int32 kListParties = Team::kThreads + Team::kLoaders * kWarpSize;
template <typename Team> NSA_DEVICE void announce_list() { named_barrier_arrive(kListMade, kListParties<Team>); }
template <typename Team> NSA_DEVICE void await_list() { named_barrier_sync(kListMade, kListParties<Team>); }

// All teams meet when their queries are in shared memory. The clerk says that the gates are there too, and the loaders
// say that the mbarriers of the rings are prepared. They do not wait.
template <typename Shape> NSA_DEVICE void announce_ready() { named_barrier_arrive(kQueriesCome, Shape::kAllThreads); }
template <typename Shape> NSA_DEVICE void await_queries() { named_barrier_sync(kQueriesCome, Shape::kAllThreads); }

// The first warp says that the table of pages is in shared memory, and whether all pages exist. Loaders wait for it.
template <typename Shape>
inline constexpr int32 kBeginParties = kWarpSize * (1 + Shape::kMainLoaders + Shape::kWindowLoaders);
template <typename Shape> NSA_DEVICE void announce_begin() { named_barrier_arrive(kBegun, kBeginParties<Shape>); }
template <typename Shape> NSA_DEVICE void await_begin() { named_barrier_sync(kBegun, kBeginParties<Shape>); }

// The window's team says that its weighted result is in shared memory, and the main team waits for it.
template <typename Shape> NSA_DEVICE void announce_window() {
  named_barrier_arrive(kWindowAdded, Shape::kAttendingThreads);
}
template <typename Shape> NSA_DEVICE void await_window() { named_barrier_sync(kWindowAdded, Shape::kAttendingThreads); }

// The main team says that the new compressed row is in shared memory, and the loader that loads its piece waits for it.
template <typename Team> inline constexpr int32 kFreshParties = Team::kThreads + kWarpSize;
template <typename Team> NSA_DEVICE void announce_fresh() { named_barrier_arrive(kFreshMade, kFreshParties<Team>); }
template <typename Team> NSA_DEVICE void await_fresh() { named_barrier_sync(kFreshMade, kFreshParties<Team>); }

// Where a piece of the stream is. A warp that waits for a parity must know that the phase before is over, or it takes
// an older phase of the same parity for its own. So there are more barriers than stages: within a branch the same warps
// wait for all phases of a barrier, and between branches all warps of the team meet (push_softmax). The same loader
// waits for all phases of an empty barrier.
template <typename Team> struct RingPlace {
  NSA_DEVICE int32 stage() const { return piece % Team::kStages; }
  NSA_DEVICE int32 barrier() const { return piece % Team::kRingBarriers; }
  NSA_DEVICE int32 parity() const { return piece / Team::kRingBarriers & 1; }

  int32 piece = 0;
};

NSA_DEVICE constexpr int32 pieces_of(int32 keys) { return (keys + kPieceKeys - 1) / kPieceKeys; }

template <typename Team> struct DecodeRing {
  NSA_DEVICE DecodeRing(const DecodePlace &place, const DecodeMemory<Team> &memory) : place(place), memory(memory) {
    if constexpr (Team::kReadsCompressed) {
      cmp_pieces = pieces_of(place.past_key - place.first_key);
      fresh_row = place.uses_fresh() ? place.fresh_key - place.first_key : -1;
    }
    if constexpr (Team::attends(kWin))
      win_pieces = pieces_of(place.past_token - place.first_token);
    if (Team::attends(kSel) && !place.ranks)
      add_selected();
  }

  // The list of selected blocks is known, and so is the rest of the stream. Every kCluster-th block of the list is the
  // block's own. Without a choice the list has all blocks, and is not stored.
  NSA_DEVICE void add_selected() { sel_keys = own_keys(place.listed); }

  // The first `entries` of the list are known. The stream goes on with the pieces that they fill.
  NSA_DEVICE void add_forced(int32 entries) { sel_keys = own_keys(entries) / kPieceKeys * kPieceKeys; }

  NSA_DEVICE int32 sel_pieces() const { return pieces_of(sel_keys); }
  NSA_DEVICE int32 pieces() const { return cmp_pieces + win_pieces + sel_pieces(); }

  // Waits until a piece is in shared memory.
  NSA_DEVICE void take(const RingPlace<Team> &at) const {
    barrier_wait(shared_address(memory.full(at.barrier())), at.parity());
  }

  // The warp has read the piece. Each of its readers says so, and the stage is free when all have.
  NSA_DEVICE void give_back(const RingPlace<Team> &at) const {
    __syncwarp();
    if (threadIdx.x % kWarpSize == 0)
      barrier_arrive(shared_address(memory.empty(at.barrier())));
  }

  // Waits until all readers of a piece have given it back.
  NSA_DEVICE void await_empty(const RingPlace<Team> &at) const {
    barrier_wait(shared_address(memory.empty(at.barrier())), at.parity());
  }

  // The selection block in a place of the list.
  NSA_DEVICE int32 listed_block(int32 entry) const { return place.ranks ? memory.list()[entry] : entry; }

  // The token of a key of the selected part.
  NSA_DEVICE int32 selected_token(int32 key) const {
    const int32 entry = key / Team::Facts::kSelBlock * Team::kCluster + place.rank;
    return listed_block(entry) * Team::Facts::kSelBlock + key % Team::Facts::kSelBlock;
  }

  // The keys of the block in the first `entries` of the list.
  NSA_DEVICE int32 own_keys(int32 entries) const {
    return max((entries - place.rank + Team::kCluster - 1) / Team::kCluster, 0) * Team::Facts::kSelBlock;
  }

  const DecodePlace &place;
  const DecodeMemory<Team> memory;
  int32 cmp_pieces = 0;
  int32 win_pieces = 0;
  int32 sel_keys = 0;
  int32 fresh_row = -1; // the new compressed row in the stream, or -1
};

} // namespace nsa
