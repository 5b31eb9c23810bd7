// Finds rows in the tensors of the cache, and copies rows of queries, keys and values into shared memory.
#pragma once

#include "paged_view.cuh"
#include "shared_tile.cuh"
#include "sm90/decode_place.cuh"

namespace nsa {

// The rows of a page of a tensor, or 0 for a tensor without pages.
template <typename Pool> inline constexpr int32 kPageRowsOf = 0;
template <typename T, int32 kRank, int32 kPageRows>
inline constexpr int32 kPageRowsOf<PagedView<T, kRank, kPageRows>> = kPageRows;

// The first two coordinates of a row: its sequence and number, or its page and number in the page.
struct PoolRow {
  int32 first;
  int32 second;
  bool exists;
};

// Finds row `row` of a sequence. A row whose page the pools do not have is treated as one that does not exist, so that
// rows can be loaded before all pages were checked. `kept` is the sequence's part of the table of pages in shared
// memory, or null.
template <typename Pool>
NSA_DEVICE PoolRow find_row(const Pool &pool, int32 sequence, int32 row, bool exists, int32 pages,
                            const int32 *kept = nullptr) {
  if constexpr (kPageRowsOf<Pool> == 0) {
    return {sequence, row, exists};
  } else {
    constexpr uint32 kRows = kPageRowsOf<Pool>;
    const uint32 number = static_cast<uint32>(row) / kRows;
    int32 page = 0;
    if (exists)
      page = kept != nullptr ? kept[number]
                             : load_unchanging(pool.table + static_cast<uint32>(sequence) * pool.table_stride + number);
    exists = exists && static_cast<uint32>(page) < static_cast<uint32>(pages);
    return {exists ? page : 0, static_cast<int32>(static_cast<uint32>(row) % kRows), exists};
  }
}

template <typename T> NSA_DEVICE T *row_address(const View<T, 3> &view, int32 first, int32 second, int32 head) {
  return view.data + view.at(first, second, head).offset;
}

// kParts threads, each with its own `part`, write a row of kColumns elements to shared memory, or zeros if the row does
// not exist. The row arrives when the threads have waited for their copies and have met. Rows that do not begin at
// multiples of 16 bytes are loaded element by element.
template <int32 kColumns, int32 kParts, typename T>
NSA_DEVICE void copy_row(unsigned char *target, const T *source, int32 part, bool exists, bool aligned) {
  constexpr int32 kLanes = kChunkBytes / static_cast<int32>(sizeof(T));
  constexpr int32 kChunks = kColumns / kLanes;
  if (!aligned) {
#pragma unroll 1
    for (int32 column = part; column < kColumns; column += kParts)
      reinterpret_cast<T *>(target)[column] = exists ? source[column] : T{};
    return;
  }
#pragma unroll
  for (int32 base = 0; base < kChunks; base += kParts) {
    const int32 chunk = base + part;
    if (kChunks % kParts == 0 || chunk < kChunks)
      cp_async_16(shared_address(target) + chunk * kChunkBytes, source + chunk * kLanes, exists ? kChunkBytes : 0);
  }
}

// A thread does not end before its copies.
NSA_DEVICE void finish_copies() {
  commit_copies();
  wait_copies<0>();
}

// Whether all rows begin at multiples of 16 bytes. Absent tensors do not count.
template <typename... Views> NSA_DEVICE bool rows_aligned(const Views &...views) {
  return ((!views.present() || views.rows_aligned()) & ...);
}

// Whether one tile of queries serves all branches.
template <typename Shape, typename Arguments> NSA_DEVICE bool shares_queries(const Arguments &args) {
  bool same = Shape::kCompressed && args.q.data == args.q_cmp.data;
#pragma unroll
  for (int32 i = 0; i < 3; ++i)
    same = same && args.q.strides[i] == args.q_cmp.strides[i];
  return same;
}

// Loads the queries of the group. Rows behind the last head are zeros.
template <typename Team, typename View>
NSA_DEVICE void copy_queries(unsigned char *target, const View &q, const DecodePlace &place, bool aligned) {
  constexpr int32 kParts = 8;
  const int32 part = Team::thread() % kParts;
#pragma unroll 1
  for (int32 head = Team::thread() / kParts; head < Team::kHeads; head += Team::kThreads / kParts) {
    const bool exists = head < Team::kGroup;
    const int32 number = place.kv_head * Team::kGroup + (exists ? head : 0);
    copy_row<Team::kQkDim, kParts>(target + head * Team::kKPitch, row_address(q, place.q_entry, place.q_time, number),
                                   part, exists, aligned);
  }
}

// Zeroes the columns behind qk_dim of `rows` rows of queries or keys. Loads do not write them, and a product reads
// them.
template <typename Team> NSA_DEVICE void clear_padding(unsigned char *memory, int32 rows) {
  constexpr int32 kChunks = (Team::kQkPad - Team::kQkDim) * 2 / kChunkBytes;
  if constexpr (kChunks > 0)
#pragma unroll 1
    for (int32 i = Team::thread(); i < rows * kChunks; i += Team::kThreads)
      reinterpret_cast<Chunk *>(memory + i / kChunks * Team::kKPitch + 2 * Team::kQkDim)[i % kChunks] = {};
}

// The padding of the team's ring, and of the queries, which the main team clears.
template <typename Team> NSA_DEVICE void clear_padding(const DecodeMemory<Team> &memory) {
#pragma unroll 1
  for (int32 stage = 0; stage < Team::kStages; ++stage)
    clear_padding<Team>(memory.keys(stage), kPieceKeys);
  if constexpr (!Team::kIsWindow)
    clear_padding<Team>(memory.queries(0), Team::kQueryTiles * Team::kHeads);
}

} // namespace nsa
