// The warps that fill the ring of keys of a team. The warps that attend are so few that the time of a piece is the
// number of their instructions: finding and loading rows would double it.
//
// The loaders deal the pieces out among them. Each lane finds one row of the key and of the value, and hands its place
// to the lanes that copy neighbouring parts of the row.
//
// Most pieces are rows that all lie in the pools. A warp copies two to eight rows with five or six instructions
// (copy_pool_rows), and what is the same for all rows of a branch is computed once. The others have rows of the call's
// tensors, rows of zeros, or rows that do not begin at multiples of 16 bytes. Their addresses pass through shared
// memory.
#pragma once

#include "sm90/decode_ring.cuh"
#include "sm90/ptx_cluster.cuh"

namespace nsa {

template <typename Team, typename Arguments> struct DecodeLoader {
  using T = typename Team::Element;
  static constexpr int32 kLanes = kChunkBytes / static_cast<int32>(sizeof(T)); // elements of a chunk
  static constexpr int32 kMostChunks = (Team::kQkDim > Team::kVDim ? Team::kQkDim : Team::kVDim) / kLanes; // of a row
  static constexpr int32 kParts = kMostChunks > 8 ? 16 : kMostChunks > 4 ? 8 : 4; // lanes that copy a row
  static constexpr int32 kRowsAtOnce = kWarpSize / kParts;
  static constexpr bool kPaged = Team::Facts::kPageSize > 0;

  NSA_DEVICE DecodeLoader(const Arguments &args, DecodeRing<Team> &ring, int32 loader)
      : args(args), place(ring.place), memory(ring.memory), ring(ring), loader(loader) {}

  // Loads the loader's pieces. If a list is to be made, the last ones wait for it, but forced blocks do not. The first
  // piece does not wait until the pages are checked, because its load takes as long as all that others do before. It
  // finds pages in global memory, and waits if the new compressed row may be a part of it. Returns false if a page does
  // not exist.
  NSA_DEVICE bool run() {
    bool lacks_list = Team::attends(kSel) && Team::kRanks && place.ranks;
    bool lacks_forced = lacks_list;
    int32 piece = loader;
#pragma unroll 1
    while (true) {
      if (piece >= past_pools)
        find_pools(piece); // before the list has come
      const bool is_last = piece >= ring.pieces();
      if (!begun && (piece != loader || is_last || (Team::kReadsCompressed && place.uses_fresh())) && !begins())
        return false;
      if (is_last && lacks_forced) {
        lacks_forced = false;
        list_forced();
        continue;
      }
      if (is_last) {
        if (!lacks_list)
          break;
        lacks_list = false;
        await_list<Team>();
        ring.add_selected();
        continue;
      }
      if (piece >= Team::kStages)
        ring.await_empty({piece - Team::kStages});
      const RingPlace<Team> at = {piece};
      if (load_piece(piece, at.stage()))
        barrier_arrive_copies(shared_address(memory.full(at.barrier())));
      else
        barrier_arrive(shared_address(memory.full(at.barrier())));
      piece += Team::kLoaders;
    }
    finish_copies();
    return true;
  }

private:
  // Writes the forced blocks into the list, where their score puts them in front of all others and in ascending order.
  // So their keys are loaded while the list is made. All loaders write the same numbers, and the main team writes them
  // once more. A loader does it when its other pieces are on their way, so that these do not wait for it.
  NSA_DEVICE void list_forced() {
    const int32 forced = min(args.init_blocks + args.local_blocks, place.listed);
    const int32 first_local = place.blocks - args.local_blocks - args.init_blocks; // without those before it
#pragma unroll 1
    for (int32 i = static_cast<int32>(threadIdx.x) % kWarpSize; i < forced; i += kWarpSize)
      memory.list()[i] = i < args.init_blocks ? i : first_local + i;
    __syncwarp();
    ring.add_forced(forced);
  }

  // Waits until the pages are checked. Returns false if one of them does not exist.
  NSA_DEVICE bool begins() {
    begun = true;
    await_begin<Team>();
    if (*memory.numbers(Team::kBadPageAt) != 0) {
      finish_copies();
      return false;
    }
    cluster_arrive_relaxed();
    return true;
  }

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

  // Returns whether rows are still on their way, by asynchronous copies. Rows are copied so if all rows of the branch
  // begin at multiples of 16 bytes.
  NSA_DEVICE bool load_piece(int32 piece, int32 stage) const {
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    if (pools.counts) {
      const int32 row = lane % kPieceKeys;
      const int32 number =
          Team::kReadsCompressed && piece < ring.cmp_pieces ? pool_key(piece, row) : pool_token(piece, row);
      if (!any_lane(number < 0)) {
        const PoolSource from = find_pool_row(piece, number);
        if (!kPaged || !any_lane(!from.exists)) {
          copy_pool_rows(from, stage);
          return true;
        }
      }
    }
    __syncwarp(); // all lanes have read the addresses of the piece before
    if (lane < kPieceKeys)
      find_row_of(piece, lane);
    __syncwarp();
    if (pools.aligned)
      copy_rows(stage);
    else
      copy_elements(stage);
    const int32 row = ring.fresh_row - piece * kPieceKeys;
    if (!(Team::kReadsCompressed && piece < ring.cmp_pieces && row >= 0 && row < kPieceKeys))
      return pools.aligned;
    finish_copies(); // they write zeros in the place of the row
    await_fresh<Team>();
    copy_fresh(row, stage);
    return false;
  }

  // Copies the compressed row that this step made.
  NSA_DEVICE void copy_fresh(int32 row, int32 stage) const {
    constexpr int32 kKChunks = Team::kQkDim * 2 / kChunkBytes;
    constexpr int32 kChunks = kKChunks + Team::kVDim * 2 / kChunkBytes;
    const Chunk *fresh = reinterpret_cast<const Chunk *>(memory.fresh());
    const bool attended = Team::kHasCmp && place.fresh_key >= place.attended_key;
#pragma unroll 1
    for (int32 chunk = static_cast<int32>(threadIdx.x) % kWarpSize; chunk < kChunks; chunk += kWarpSize) {
      if (chunk < kKChunks)
        reinterpret_cast<Chunk *>(memory.keys(stage) + row * Team::kKPitch)[chunk] = fresh[chunk];
      else
        reinterpret_cast<Chunk *>(memory.values(stage) + row * Team::kVPitch)[chunk - kKChunks] =
            attended ? fresh[chunk] : Chunk{};
    }
  }

  // The pools of a branch, as a lane needs them that copies a part of rows. Without pages the number of a row tells
  // where it lies, and with pages a number of chunks for the key and another for the value.
  struct Pools {
    const unsigned char *keys; // the lane's part of the first row of the sequence and the head, or of the first page
    const unsigned char *values;
    uint32 key_row; // bytes between rows, or with pages chunks
    uint32 value_row;
    uint32 key_page; // chunks
    uint32 value_page;
    bool aligned; // all rows of the branch begin at multiples of 16 bytes
    bool counts;  // they do, and 32 bits are enough for the numbers
  };

  // Finds the pools of the piece's branch. Pieces come in the order of the branches. Only the arguments of this branch
  // are looked at. The first use of a line of arguments waits for constant memory, so the arguments of other branches
  // would delay the first piece.
  NSA_DEVICE void find_pools(int32 piece) {
    const int32 before = ring.cmp_pieces + ring.win_pieces;
    View<T, 3> k, v;
    bool aligned = true; // the rows of the new tokens
    if (Team::kReadsCompressed && piece < ring.cmp_pieces) {
      k = args.k_comp, v = args.v_comp;
      past_pools = ring.cmp_pieces;
    } else if (piece < before || !Team::attends(kSel)) {
      k = args.k_win_cache, v = args.v_win_cache;
      aligned = rows_aligned(args.k_win, args.v_win);
      past_pools = Team::attends(kSel) ? before : 0x7fffffff;
    } else {
      k = args.k_sel_cache, v = args.v_sel_cache;
      aligned = rows_aligned(args.k_sel, args.v_sel);
      past_pools = 0x7fffffff;
    }
    pools.aligned = aligned && rows_aligned(k, v);
    pools.counts = pools.aligned;
    pools.keys = find_pool(k, pools.key_page, pools.key_row);
    pools.values = find_pool(v, pools.value_page, pools.value_row);
  }

  NSA_DEVICE const unsigned char *find_pool(const View<T, 3> &pool, uint32 &page, uint32 &row) {
    const int32 part = static_cast<int32>(threadIdx.x) % kParts;
    const T *data = row_address(pool, kPaged ? 0 : place.k_entry, 0, place.kv_head);
    const int64 row_bytes = pool.strides[1] * static_cast<int64>(sizeof(T));
    row = static_cast<uint32>(row_bytes);
    if constexpr (kPaged) {
      // The chunks of the last row are counted in 32 bits, too.
      constexpr int64 kMost = 0xffffff00;
      constexpr int64 kRows = Team::Facts::kPageSize;
      const int64 page_chunks = pool.strides[0] / kLanes;
      const int64 row_chunks = row_bytes / kChunkBytes;
      pools.counts = pools.counts && page_chunks >= 0 && page_chunks <= kMost && row_chunks >= 0 &&
                     row_chunks <= kMost / kRows && (args.pages - 1) * page_chunks + kRows * row_chunks <= kMost;
      page = static_cast<uint32>(page_chunks);
      row = static_cast<uint32>(row_chunks);
    } else {
      pools.counts = pools.counts && row == row_bytes;
    }
    return reinterpret_cast<const unsigned char *>(data) + part * kChunkBytes;
  }

  // The compressed key of a row of a piece, or -1 if the row does not lie in the pools or its value is not to be read.
  // In the place of a row that does not exist comes one that the query attends. Its weight there is 0. A weight of 0
  // makes NaN of a value that is not finite, but then the output is not finite either way.
  NSA_DEVICE int32 pool_key(int32 piece, int32 row) const {
    const int32 key = max(min(place.first_key + piece * kPieceKeys + row, place.past_key - 1), 0);
    return Team::kHasCmp && !(place.uses_fresh() && key == place.fresh_key) ? key : -1;
  }

  // The token of a row of the window or of the selected part, or -1 if the row does not lie in the pools.
  NSA_DEVICE int32 pool_token(int32 piece, int32 row) const {
    constexpr int32 kBlock = Team::Facts::kSelBlock;
    const int32 before = ring.cmp_pieces + ring.win_pieces;
    int32 token;
    if (piece < before) {
      token = min(place.first_token + (piece - ring.cmp_pieces) * kPieceKeys + row, place.past_token - 1);
    } else {
      token = ring.selected_token(min((piece - before) * kPieceKeys + row, ring.sel_keys - 1));
      if (token > place.position)
        token = token / kBlock * kBlock;
    }
    return token >= place.cached() ? -1 : token;
  }

  // Where a row lies in the pools of its branch.
  struct PoolSource {
    uint32 key;
    uint32 value;
    bool exists;
  };

  // Finds the row `number` of the sequence in the pools of the piece's branch.
  NSA_DEVICE PoolSource find_pool_row(int32 piece, int32 number) const {
    if (Team::kReadsCompressed && piece < ring.cmp_pieces)
      return pool_source(args.k_comp, number);
    if (piece < ring.cmp_pieces + ring.win_pieces)
      return pool_source(args.k_win_cache, number);
    return pool_source(args.k_sel_cache, number);
  }

  template <typename Pool> NSA_DEVICE PoolSource pool_source(const Pool &pool, int32 number) const {
    const PoolRow at = find_row(pool, place.k_entry, number, true, args.pages, kept_table());
    const uint32 page = at.first;
    const uint32 row = at.second;
    if constexpr (!kPaged)
      return {row, row, at.exists};
    return {page * pools.key_page + row * pools.key_row, page * pools.value_page + row * pools.value_row, at.exists};
  }

  // Copies the rows of a piece. Lane i has found row i % kPieceKeys.
  NSA_DEVICE void copy_pool_rows(const PoolSource &from, int32 stage) const {
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    const int32 part = lane % kParts;
    const int32 row = lane / kParts;
    const uint32 keys = shared_address(memory.keys(stage)) + row * Team::kKPitch + part * kChunkBytes;
    const uint32 values = shared_address(memory.values(stage)) + row * Team::kVPitch + part * kChunkBytes;
    const uint64 key_bytes = kPaged ? kChunkBytes : pools.key_row;
    const uint64 value_bytes = kPaged ? kChunkBytes : pools.value_row;
#pragma unroll
    for (int32 first = 0; first < kPieceKeys; first += kRowsAtOnce) {
      const uint32 key = shuffle(from.key, first + row);
      const uint32 value = kPaged ? shuffle(from.value, first + row) : key;
      copy_chunks<Team::kQkDim / kLanes>(keys + first * Team::kKPitch, pools.keys + key * key_bytes, part);
      copy_chunks<Team::kVDim / kLanes>(values + first * Team::kVPitch, pools.values + value * value_bytes, part);
    }
  }

  template <int32 kChunks> NSA_DEVICE static void copy_chunks(uint32 to, const unsigned char *from, int32 part) {
#pragma unroll
    for (int32 chunk = 0; chunk < kChunks; chunk += kParts)
      if (kChunks % kParts == 0 || chunk + part < kChunks)
        cp_async_16(to + chunk * kChunkBytes, from + chunk * kChunkBytes, kChunkBytes);
  }

  // A part of the lanes copies a row: each takes every kParts-th chunk of the key and of the value.
  NSA_DEVICE void copy_rows(int32 stage) const {
    constexpr int32 kKChunks = Team::kQkDim / kLanes;
    constexpr int32 kVChunks = Team::kVDim / kLanes;
    // A copy is an access to memory that no load may pass, so the addresses of several copies are loaded first.
    constexpr int32 kTurns = kPieceKeys / kRowsAtOnce;
    constexpr int32 kAtOnce = kTurns < 4 ? kTurns : 4;
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    const int32 part = lane % kParts;
    const int32 row = lane / kParts;
    const uint32 keys = shared_address(memory.keys(stage)) + row * Team::kKPitch + part * kChunkBytes;
    const uint32 values = shared_address(memory.values(stage)) + row * Team::kVPitch + part * kChunkBytes;
    const uint64 *sources = memory.sources(loader * kPieceKeys + row);
#pragma unroll 1
    for (int32 first = 0; first < kPieceKeys; first += kAtOnce * kRowsAtOnce) {
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
    for (int32 row = 0; row < kPieceKeys; ++row) {
      const uint64 *sources = memory.sources(loader * kPieceKeys + row);
      copy_row_elements<Team::kQkDim>(memory.keys(stage) + row * Team::kKPitch, sources[0], lane);
      copy_row_elements<Team::kVDim>(memory.values(stage) + row * Team::kVPitch, sources[1], lane);
    }
  }

  template <int32 kColumns> NSA_DEVICE static void copy_row_elements(unsigned char *to, Address from, int32 lane) {
    const T *source = reinterpret_cast<const T *>(from & ~Address{1});
#pragma unroll 1
    for (int32 column = lane; column < kColumns; column += kWarpSize)
      reinterpret_cast<T *>(to)[column] = from % 2 == 0 ? source[column] : T{};
  }

  NSA_DEVICE void find_row_of(int32 piece, int32 row) const {
    const int32 key = piece * kPieceKeys + row;
    // The new compressed row is not in memory (copy_fresh).
    const bool is_fresh = piece < ring.cmp_pieces && key == ring.fresh_row;
    const int32 before = ring.cmp_pieces + ring.win_pieces;
    const Source from = piece < ring.cmp_pieces ? compressed_source(place.first_key + key)
                        : piece < before ? windowed_source(place.first_token + key - ring.cmp_pieces * kPieceKeys)
                                         : selected_source(key - before * kPieceKeys);
    Address *sources = memory.sources(loader * kPieceKeys + row);
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
                     find_row(args.k_comp, place.k_entry, exists ? key : 0, exists, args.pages, kept_table()),
                     Team::kHasCmp && key >= place.attended_key);
  }

  // A token of the window or of a selected block. The pools do not hold the new tokens yet.
  template <typename Pool, typename New>
  NSA_DEVICE Source token_source(const Pool &k, const Pool &v, const New &k_new, const New &v_new, int32 token,
                                 bool exists) const {
    const bool is_new = exists && token >= place.cached();
    const PoolRow at = find_row(k, place.k_entry, exists ? token : 0, exists && !is_new, args.pages, kept_table());
    Source source = source_at(k, v, at, true);
    if (is_new)
      source = source_at(k_new, v_new, {place.q_entry, place.q_time + token - place.position, true}, true);
    return source;
  }

  NSA_DEVICE Source windowed_source(int32 token) const {
    const bool exists = token < place.past_token;
    return token_source(args.k_win_cache, args.v_win_cache, args.k_win, args.v_win, token, exists);
  }

  NSA_DEVICE Source selected_source(int32 key) const {
    const int32 token = key < ring.sel_keys ? ring.selected_token(key) : place.position + 1;
    const bool exists = token <= place.position;
    return token_source(args.k_sel_cache, args.v_sel_cache, args.k_sel, args.v_sel, token, exists);
  }

  NSA_DEVICE const int32 *kept_table() const {
    return Team::kTableEntries > 0 && begun ? memory.numbers(Team::kTableAt) : nullptr;
  }

  const Arguments &args;
  const DecodePlace &place;
  const DecodeMemory<Team> memory;
  DecodeRing<Team> &ring;
  const int32 loader;
  bool begun = false; // the pages are checked
  Pools pools;
  int32 past_pools = 0; // the first piece behind the branch of these pools
};

} // namespace nsa
