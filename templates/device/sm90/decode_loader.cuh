// The warps that fill the ring of keys of a team. The warps that attend are so few that the time of a tile is the
// number of their instructions: finding and loading rows would double it.
//
// Each lane finds one row of the key and of the value, and writes the addresses down in shared memory. Then the lanes
// of a warp copy neighbouring pieces of the rows. The copies are a short loop that is not unrolled, because the first
// tile waits for each instruction to be fetched.
#pragma once

#include "sm90/decode_ring.cuh"

namespace nsa {

template <typename Team, typename Arguments> struct DecodeLoader {
  using T = typename Team::Element;
  static constexpr int32 kTile = Team::kKeyTile;
  static constexpr int32 kRows = kTile / Team::kLoaders; // of a tile, for each loader
  static_assert(kRows <= kWarpSize, "a lane finds one row of a tile");
  static constexpr int32 kParts = 16; // lanes that copy a row
  static constexpr int32 kRowsAtOnce = kWarpSize / kParts;

  NSA_DEVICE DecodeLoader(const Arguments &args, DecodeRing<Team> &ring, int32 loader)
      : args(args), place(ring.place), memory(ring.memory), ring(ring), first_row(loader * kRows) {}

  // Loads all tiles of the team. If a list is to be made, the last ones wait for it.
  NSA_DEVICE void run() {
    RingPlace<Team> at;
    int32 tile = 0;
#pragma unroll 1
    for (int32 part = 0; part < 2; ++part) {
      if (part == 1) {
        if (!(Team::attends(kSel) && Team::kRanks && place.ranks))
          break;
        await_list<Team>();
        ring.add_selected();
      }
#pragma unroll 1
      for (; tile < ring.tiles(); ++tile) {
        if (tile >= Team::kStages)
          barrier_wait(shared_address(memory.empty(at.stage)), at.parity ^ 1);
        if (load_tile(tile, at.stage))
          barrier_arrive_copies(shared_address(memory.full(at.stage)));
        else
          barrier_arrive(shared_address(memory.full(at.stage)));
        at.advance();
      }
    }
    // A thread does not end before its copies.
    commit_copies();
    wait_copies<0>();
  }

private:
  // The address of a row in global memory as a number: even, or odd for a row of zeros.
  using Address = uint64;

  struct Source {
    const T *key;
    const T *value;
    bool has_key;
    bool has_value;
  };

  NSA_DEVICE static Address address_of(const T *row, bool exists) {
    return reinterpret_cast<Address>(row) | (exists ? 0 : 1);
  }

  // Returns whether the rows come by asynchronous copies. They do if all rows of the tile's branch begin at multiples
  // of 16 bytes.
  NSA_DEVICE bool load_tile(int32 tile, int32 stage) const {
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    __syncwarp(); // all lanes have read the addresses of the tile before
    if (lane < kRows)
      find_row_of(tile, first_row + lane);
    __syncwarp();
    const bool aligned = is_aligned(tile);
    if (aligned)
      copy_rows(stage);
    else
      copy_elements(stage);
    return aligned;
  }

  // Only the flags of the tile's branch are looked at. The first use of each line of the arguments waits for constant
  // memory, so flags of other branches would delay the first tile.
  NSA_DEVICE bool is_aligned(int32 tile) const {
    if (tile < ring.cmp_tiles)
      return rows_aligned(args.k_comp, args.v_comp);
    const bool windowed = tile < ring.cmp_tiles + ring.win_tiles;
    bool aligned =
        windowed ? rows_aligned(args.k_win_cache, args.v_win_cache) : rows_aligned(args.k_sel_cache, args.v_sel_cache);
    if constexpr (Team::Facts::kAppends)
      aligned = aligned && (windowed ? rows_aligned(args.k_win, args.v_win) : rows_aligned(args.k_sel, args.v_sel));
    return aligned;
  }

  // A part of the lanes copies a row: each takes every kParts-th chunk of the key and of the value.
  NSA_DEVICE void copy_rows(int32 stage) const {
    constexpr int32 kLanes = kChunkBytes / static_cast<int32>(sizeof(T));
    constexpr int32 kKChunks = Team::kQkDim / kLanes;
    constexpr int32 kVChunks = Team::kVDim / kLanes;
    // A copy is an access to memory that no load may pass, so the addresses of several copies are loaded first.
    constexpr int32 kAtOnce = 4;
    static_assert(kRows % (kAtOnce * kRowsAtOnce) == 0, "all turns copy as many rows");
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    const int32 part = lane % kParts;
    const int32 row = first_row + lane / kParts;
    const uint32 keys = shared_address(memory.keys(stage)) + row * Team::kKPitch + part * kChunkBytes;
    const uint32 values = shared_address(memory.values(stage)) + row * Team::kVPitch + part * kChunkBytes;
    const uint64 *sources = memory.sources(row);
#pragma unroll 1
    for (int32 first = 0; first < kRows; first += kAtOnce * kRowsAtOnce) {
      Chunk from[kAtOnce];
#pragma unroll
      for (int32 i = 0; i < kAtOnce; ++i)
        from[i] = *reinterpret_cast<const Chunk *>(sources + 2 * (first + i * kRowsAtOnce));
#pragma unroll
      for (int32 i = 0; i < kAtOnce; ++i) {
        const int32 at = first + i * kRowsAtOnce;
        copy_parts<kKChunks>(keys + at * Team::kKPitch, from[i].words[0], from[i].words[1], part);
        copy_parts<kVChunks>(values + at * Team::kVPitch, from[i].words[2], from[i].words[3], part);
      }
    }
  }

  template <int32 kChunks> NSA_DEVICE static void copy_parts(uint32 to, uint32 low, uint32 high, int32 part) {
    const Address address = static_cast<Address>(high) << 32 | (low & ~1u);
    const unsigned char *from = reinterpret_cast<const unsigned char *>(address) + part * kChunkBytes;
    const int32 bytes = low % 2 == 0 ? kChunkBytes : 0;
#pragma unroll
    for (int32 chunk = 0; chunk < kChunks; chunk += kParts)
      if (kChunks % kParts == 0 || chunk + part < kChunks)
        cp_async_16(to + chunk * kChunkBytes, from + chunk * kChunkBytes, bytes);
  }

  // Copies rows that do not begin at multiples of 16 bytes.
  NSA_DEVICE void copy_elements(int32 stage) const {
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
#pragma unroll 1
    for (int32 row = first_row; row < first_row + kRows; ++row) {
      copy_row_elements<Team::kQkDim>(memory.keys(stage) + row * Team::kKPitch, memory.sources(row)[0], lane);
      copy_row_elements<Team::kVDim>(memory.values(stage) + row * Team::kVPitch, memory.sources(row)[1], lane);
    }
  }

  template <int32 kColumns> NSA_DEVICE static void copy_row_elements(unsigned char *to, Address from, int32 lane) {
    const T *source = reinterpret_cast<const T *>(from & ~Address{1});
#pragma unroll 1
    for (int32 column = lane; column < kColumns; column += kWarpSize)
      reinterpret_cast<T *>(to)[column] = from % 2 == 0 ? source[column] : T{};
  }

  NSA_DEVICE void find_row_of(int32 tile, int32 row) const {
    const int32 key = tile * kTile + row;
    // The new compressed row is not in memory. It comes into the tile later (DecodeRing::take).
    const bool is_fresh = tile < ring.cmp_tiles && key == ring.fresh_row;
    const int32 before = ring.cmp_tiles + ring.win_tiles;
    const Source from = tile < ring.cmp_tiles ? compressed_source(place.first_key + key)
                        : tile < before       ? windowed_source(place.first_token + key - ring.cmp_tiles * kTile)
                                              : selected_source(key - before * kTile);
    Address *sources = memory.sources(row);
    sources[0] = address_of(from.key, from.has_key && !is_fresh);
    sources[1] = address_of(from.value, from.has_value && !is_fresh);
  }

  template <typename Pool>
  NSA_DEVICE Source source_at(const Pool &k, const Pool &v, const PoolRow &at, bool with_value) const {
    return {row_address<T>(k, at.first, at.second, place.kv_head),
            row_address<T>(v, at.first, at.second, place.kv_head), at.exists, at.exists && with_value};
  }

  NSA_DEVICE Source compressed_source(int32 key) const {
    const bool exists = key >= 0 && key < place.past_key;
    return source_at(args.k_comp, args.v_comp,
                     find_row(args.k_comp, place.k_entry, exists ? key : 0, exists, pages_of<Team>(args), kept_table()),
                     Team::kHasCmp && key >= place.attended_key);
  }

  // A token of the window or of a selected block. The pools do not hold the new tokens yet.
  template <typename Pool, typename New>
  NSA_DEVICE Source token_source(const Pool &k, const Pool &v, const New &k_new, const New &v_new, int32 token,
                                 bool exists) const {
    const bool is_new = Team::Facts::kAppends && exists && token >= place.cached();
    const PoolRow at =
        find_row(k, place.k_entry, exists ? token : 0, exists && !is_new, pages_of<Team>(args), kept_table());
    Source source = source_at(k, v, at, true);
    if (is_new)
      source = source_at(k_new, v_new, {place.q_entry, place.q_time + token - place.position, true}, true);
    return source;
  }

  NSA_DEVICE Source windowed_source(int32 token) const {
    const bool exists = token < place.past_token;
    if constexpr (Team::Facts::kAppends)
      return token_source(args.k_win_cache, args.v_win_cache, args.k_win, args.v_win, token, exists);
    else
      return token_source(args.k_win_cache, args.v_win_cache, args.k_win_cache, args.v_win_cache, token, exists);
  }

  NSA_DEVICE Source selected_source(int32 key) const {
    const int32 token = key < ring.sel_keys ? ring.selected_token(key) : place.position + 1;
    const bool exists = token <= place.position;
    if constexpr (Team::Facts::kAppends)
      return token_source(args.k_sel_cache, args.v_sel_cache, args.k_sel, args.v_sel, token, exists);
    else
      return token_source(args.k_sel_cache, args.v_sel_cache, args.k_sel_cache, args.v_sel_cache, token, exists);
  }

  NSA_DEVICE const int32 *kept_table() const {
    return Team::kTableEntries > 0 ? memory.numbers(Team::kTableAt) : nullptr;
  }

  const Arguments &args;
  const DecodePlace &place;
  const DecodeMemory<Team> memory;
  DecodeRing<Team> &ring;
  const int32 first_row;
};

} // namespace nsa
