// The ring of shared memory through which all keys and values of a block pass, in tiles of kKeyTile keys. The tiles
// make one stream: first the compressed keys of the block, then its part of the window, then its selected blocks.
// Loads run ahead of the products, over the ends of the branches too.
#pragma once

#include "sm90/decode_rows.cuh"
#include "sm90/ptx_barrier.cuh"

namespace nsa {

// All threads that attend meet. The clerk's warp does not take part.
template <typename Shape> NSA_DEVICE void meet() { named_barrier_sync(1, Shape::kThreads); }

// Waits until at most `pending` groups of this thread's copies are incomplete.
template <int32 kMost> NSA_DEVICE void wait_pending(int32 pending) {
  if constexpr (kMost > 0) {
    if (pending < kMost)
      return wait_pending<kMost - 1>(pending);
  }
  wait_copies<kMost>();
}

// The selection block in a place of the list.
template <typename Shape>
NSA_DEVICE int32 listed_block(const DecodeMemory<Shape> &memory, const DecodePlace &place, int32 entry) {
  return place.ranks ? memory.list()[entry] : entry;
}

template <typename Shape, typename Arguments> struct DecodeRing {
  using T = typename Shape::Element;
  static constexpr int32 kTile = Shape::kKeyTile;
  static constexpr int32 kParts = Shape::kThreads / kTile; // threads of a row

  NSA_DEVICE DecodeRing(const Arguments &args, const DecodePlace &place, const DecodeMemory<Shape> &memory,
                        bool aligned)
      : args(args), place(place), memory(memory), aligned(aligned) {
    cmp_tiles = (place.past_key - place.first_key + kTile - 1) / kTile;
    win_tiles = (place.past_token - place.first_token + kTile - 1) / kTile;
    known = cmp_tiles + win_tiles;
    fresh_row = place.uses_fresh() ? place.fresh_key - place.first_key : -1;
    if (!place.ranks)
      add_selected();
  }

  // The list of selected blocks is known, and so is the rest of the stream. Every kCluster-th block of the list is the
  // block's own. Without a choice the list has all blocks, and is not stored.
  NSA_DEVICE void add_selected() {
    const int32 entries = (place.listed - place.rank + Shape::kCluster - 1) / Shape::kCluster;
    sel_keys = max(entries, 0) * Shape::Facts::kSelBlock;
    known += sel_tiles();
  }

  NSA_DEVICE int32 sel_tiles() const { return (sel_keys + kTile - 1) / kTile; }

  // Loads tiles into all free stages. The threads have met since the last product with a tile before `current`.
  NSA_DEVICE void load_ahead(int32 current) {
#pragma unroll 1
    while (loaded < known && loaded < current + Shape::kStages) {
      load_tile(loaded, stage_to_load);
      commit_copies();
      ++loaded;
      stage_to_load = next_stage(stage_to_load);
    }
  }

  // Waits until tile `current` is in shared memory, loads further ones, and returns the stage of the tile.
  NSA_DEVICE int32 take(int32 current) {
    wait_pending<Shape::kStages - 1>(loaded - current - 1);
    if (current < cmp_tiles && current * kTile <= fresh_row && fresh_row < (current + 1) * kTile)
      place_fresh(fresh_row - current * kTile, stage_to_take);
    meet<Shape>();
    load_ahead(current);
    const int32 stage = stage_to_take;
    stage_to_take = next_stage(stage_to_take);
    return stage;
  }

  // The token of a key of the selected part, and whether the query attends it.
  NSA_DEVICE int32 selected_token(int32 key) const {
    const int32 entry = key / Shape::Facts::kSelBlock * Shape::kCluster + place.rank;
    return listed_block(memory, place, entry) * Shape::Facts::kSelBlock + key % Shape::Facts::kSelBlock;
  }
  NSA_DEVICE bool attends_selected(int32 key) const { return key < sel_keys && selected_token(key) <= place.position; }

  const Arguments &args;
  const DecodePlace &place;
  const DecodeMemory<Shape> memory;
  const bool aligned;
  int32 cmp_tiles;
  int32 win_tiles;
  int32 sel_keys = 0;

private:
  NSA_DEVICE static int32 next_stage(int32 stage) { return stage + 1 == Shape::kStages ? 0 : stage + 1; }

  // The rows of a key and its value in global memory.
  struct Source {
    const T *key;
    const T *value;
    bool has_key;
    bool has_value;
  };

  NSA_DEVICE void load_tile(int32 tile, int32 stage) const {
    const int32 row = static_cast<int32>(threadIdx.x) / kParts;
    const int32 part = static_cast<int32>(threadIdx.x) % kParts;
    const int32 key = tile * kTile + row;
    // The new compressed row is not in memory (place_fresh). A copy of zeros would come in its way.
    if (tile < cmp_tiles && key == fresh_row)
      return;
    const Source from = tile < cmp_tiles               ? compressed_source(place.first_key + key)
                        : tile < cmp_tiles + win_tiles ? windowed_source(place.first_token + key - cmp_tiles * kTile)
                                                       : selected_source(key - (cmp_tiles + win_tiles) * kTile);
    copy_row<Shape::kQkDim, kParts>(memory.keys(stage) + row * Shape::kKPitch, from.key, part, from.has_key, aligned);
    copy_row<Shape::kVDim, kParts>(memory.values(stage) + row * Shape::kVPitch, from.value, part, from.has_value,
                                   aligned);
  }

  template <typename Pool>
  NSA_DEVICE Source source_at(const Pool &k, const Pool &v, const PoolRow &at, bool with_value) const {
    return {row_address<T>(k, at.first, at.second, place.kv_head),
            row_address<T>(v, at.first, at.second, place.kv_head), at.exists, at.exists && with_value};
  }

  NSA_DEVICE Source compressed_source(int32 key) const {
    const bool exists = key >= 0 && key < place.past_key;
    return source_at(args.k_comp, args.v_comp,
                     find_row(args.k_comp, place.k_entry, exists ? key : 0, exists, pages_of<Shape>(args)),
                     Shape::kHasCmp && key >= place.attended_key);
  }

  // A token of the window or of a selected block. The pools do not hold the new token yet.
  template <typename Pool, typename New>
  NSA_DEVICE Source token_source(const Pool &k, const Pool &v, const New &k_new, const New &v_new, int32 token,
                                 bool exists, const int32 *table) const {
    const bool is_new = Shape::Facts::kAppends && exists && token == place.position;
    const PoolRow at = find_row(k, place.k_entry, exists ? token : 0, exists && !is_new, pages_of<Shape>(args), table);
    Source source = source_at(k, v, at, true);
    if (is_new)
      source = source_at(k_new, v_new, {place.q_entry, place.q_time, true}, true);
    return source;
  }

  NSA_DEVICE Source windowed_source(int32 token) const {
    const bool exists = token < place.past_token;
    if constexpr (Shape::Facts::kAppends)
      return token_source(args.k_win_cache, args.v_win_cache, args.k_win, args.v_win, token, exists, nullptr);
    else
      return token_source(args.k_win_cache, args.v_win_cache, args.k_win_cache, args.v_win_cache, token, exists,
                          nullptr);
  }

  NSA_DEVICE Source selected_source(int32 key) const {
    const bool exists = attends_selected(key);
    const int32 token = exists ? selected_token(key) : 0;
    if constexpr (Shape::Facts::kAppends)
      return token_source(args.k_sel_cache, args.v_sel_cache, args.k_sel, args.v_sel, token, exists, kept_table());
    else
      return token_source(args.k_sel_cache, args.v_sel_cache, args.k_sel_cache, args.v_sel_cache, token, exists,
                          nullptr);
  }

  // The table of pages is in shared memory when a list that was made says what to load. Blocks that are known before
  // are loaded before the table is there.
  NSA_DEVICE const int32 *kept_table() const {
    return Shape::kTableEntries > 0 && place.ranks ? memory.numbers(Shape::kTableAt) : nullptr;
  }

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

  int32 known;     // tiles whose keys are known
  int32 fresh_row; // the new compressed row in the stream, or -1
  int32 loaded = 0;
  int32 stage_to_load = 0;
  int32 stage_to_take = 0;
};

} // namespace nsa
