// The new tokens in the cache: their rows, and the length of the sequence. templates/tile/append.tile defines what is
// written. They are so few that they complete one compressed row at most (decode_compress.cuh).
#pragma once

#include "ptx_warp.cuh"
#include "sm90/decode_ring.cuh"
#include "sm90/ptx_cluster.cuh"

namespace nsa {

// The clerk's warp of each block writes some of the rows of its token, and raises the length of the sequence. It keeps
// no other warp waiting.
template <typename Shape, typename Arguments> struct DecodeClerk {
  using T = typename Shape::Element;

  NSA_DEVICE void append() const {
    const bool one_k_pool = args.k_win_cache.data == args.k_sel_cache.data;
    const bool one_v_pool = args.v_win_cache.data == args.v_sel_cache.data;
    append_row<Shape::kQkDim>(0, args.k_sel, args.k_sel_cache);
    append_row<Shape::kVDim>(1, args.v_sel, args.v_sel_cache);
    if (!one_k_pool)
      append_row<Shape::kQkDim>(2, args.k_win, args.k_win_cache);
    if (!one_v_pool)
      append_row<Shape::kVDim>(3, args.v_win, args.v_win_cache);
    if (place.token < first_late())
      write_ring<true>(place.token, place.kv_head);
  }

  // All clusters of the sequence read its length, so only the last of them to come here may change it. Each leaves a
  // mark for its token and head, and the one that sees all marks raises the length and clears the marks. The memory of
  // the marks is not initialised. A mark is a number of 64 bits that depends on the sequence and its length, so what
  // lies there before is no mark. All blocks of the cluster have read the length and the ring.
  NSA_DEVICE void raise_length() const {
    if (place.rank != 0)
      return;
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    const uint64 mark = mark_of(place.sequence, place.cached());
    const int32 marks = place.added * args.kv_heads;
    if (marks > 1) {
      if (lane == 0)
        store_mark(mark_at(place.token * args.kv_heads + place.kv_head), mark);
      __syncwarp();
      fence_marks();
      bool missing = false;
      for (int32 number = lane; number < marks; number += kWarpSize)
        missing |= load_mark(mark_at(number)) != mark;
      if (any_lane(missing))
        return;
      for (int32 number = lane; number < marks; number += kWarpSize)
        store_mark(mark_at(number), 0);
#pragma unroll 1
      for (int32 number = first_late() * args.kv_heads; number < marks; ++number)
        write_ring<false>(number / args.kv_heads, number % args.kv_heads);
    }
    if (lane == 0)
      args.cache_seqlens.set(args.cache_seqlens.at(place.sequence).offset, place.cached() + place.added);
  }

  const Arguments &args;
  const DecodePlace &place;

private:
  // New tokens from this one on are behind the one that completes a compressed row. In the ring they take the place of
  // tokens of which this row is made, and clusters of other tokens make the row too.
  NSA_DEVICE int32 first_late() const {
    const int32 complete = complete_at<typename Shape::Facts>(place.cached() + place.added);
    return complete > place.cached() ? complete - place.cached() : place.added;
  }

  // Writes the rows of a new token into the ring. Blocks of the cluster share the rows of their own token.
  template <bool kShares> NSA_DEVICE void write_ring(int32 token, int32 head) const {
    const PoolRow to = {place.sequence, (place.cached() + token) % Shape::Facts::kCmpBlock, true};
    write_row<Shape::kQkDim>(kShares ? 4 : place.rank, args.k_cmp, args.k_raw, to, token, head);
    write_row<Shape::kVDim>(kShares ? 5 : place.rank, args.v_cmp, args.v_raw, to, token, head);
  }

  template <int32 kColumns, typename New, typename Pool>
  NSA_DEVICE void append_row(int32 task, const New &rows, const Pool &pool) const {
    if (task % Shape::kCluster == place.rank && pool.present())
      write_row<kColumns>(task, rows, pool, find_row(pool, place.k_entry, place.position, true, args.pages),
                          place.token, place.kv_head);
  }

  template <int32 kColumns>
  NSA_DEVICE void write_row(int32 task, const View<T, 3> &rows, const View<T, 3> &target, const PoolRow &at,
                            int32 token, int32 head) const {
    if (task % Shape::kCluster != place.rank || !rows.present() || !target.present())
      return;
    constexpr int32 kLanes = kChunkBytes / static_cast<int32>(sizeof(T));
    const int32 lane = static_cast<int32>(threadIdx.x) % kWarpSize;
    const T *from = row_address(rows, place.q_entry, place.q_time - place.token + token, head);
    T *to = row_address(target, at.first, at.second, head);
    if (rows_aligned(rows, target)) {
#pragma unroll 1
      for (int32 chunk = lane; chunk < kColumns / kLanes; chunk += kWarpSize)
        reinterpret_cast<Chunk *>(to)[chunk] = reinterpret_cast<const Chunk *>(from)[chunk];
    } else {
#pragma unroll 1
      for (int32 column = lane; column < kColumns; column += kWarpSize)
        to[column] = from[column];
    }
  }

  NSA_DEVICE uint64 *mark_at(int32 number) const {
    return reinterpret_cast<uint64 *>(args.arrivals.data + args.arrivals.at(place.sequence, 0).offset) + number;
  }

  // Mixes the bits of both numbers (the finalizer of splitmix64). No mark is 0.
  NSA_DEVICE static uint64 mark_of(int32 sequence, int32 length) {
    uint64 x = static_cast<uint64>(static_cast<uint32>(sequence)) << 32 | static_cast<uint32>(length);
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return (x ^ x >> 31) | 1;
  }
};

} // namespace nsa
