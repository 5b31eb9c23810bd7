// TopLists<kRows, kSlots, kWarps>: for each row of a tile, a list in shared memory of the best columns (at most kSlots)
// that top_insert has received for the row so far. Four lanes hold the columns of one row of a fragment (layout.cuh),
// and these four lanes share the list of the row. Of the four lanes that share a list, only lane t accesses slots t, t
// + 4, and so on, so no function of top_lists.cuh needs a barrier.
#pragma once

#include "fragment.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"

namespace nsa {

// Returns the sort key of a column. A column with a higher score has a higher key, and among columns with equal scores
// the lower column has the higher key. A NaN score gives a lower key than any number. The score -inf marks a column
// that does not exist, and top_key returns 0 for this score.
NSA_DEVICE uint64 top_key(float score, int32 column) {
  const uint32 bits = __float_as_uint(score);
  // If the bits of a negative float are read as an integer, a lower float gives a greater integer.
  uint32 rank = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  rank = score == 0 ? 0x80000000u : rank; // -0 and 0 are equal scores
  rank = score == score ? rank : 1;
  const uint64 key = static_cast<uint64>(rank) << 32 | ~static_cast<uint32>(column);
  return score == -infinity() ? 0 : key;
}

// Returns the column of a key, or a negative number for the key of an empty slot. An empty slot holds its own number as
// key: this key is below the keys of all columns, and no two empty slots have the same key.
NSA_DEVICE int32 top_column(uint64 key) { return static_cast<int32>(~static_cast<uint32>(key)); }

template <int32 kRows_, int32 kSlots_, int32 kWarps_> struct TopLists {
  static constexpr int32 kRows = kRows_;
  static constexpr int32 kSlots = kSlots_;
  static constexpr int32 kWarps = kWarps_;
  // The list of a row has kSlots slots, and each slot holds one key. The keys of one slot for all rows are contiguous
  // in memory. A warp accesses 32 keys at once, which are the keys in four slots of eight rows. Because of the padding
  // of four keys after each slot, the 16 keys that half a warp accesses lie in different banks of shared memory.
  static constexpr int32 kSlotStride = kRows + 4;
  static constexpr int32 kBytes = kSlots * kSlotStride * static_cast<int32>(sizeof(uint64));

  unsigned char *base;

  NSA_DEVICE explicit TopLists(unsigned char *memory) : base(memory) {}

  NSA_DEVICE uint64 &key(int32 row, int32 slot) const {
    return reinterpret_cast<uint64 *>(base)[slot * kSlotStride + row];
  }
};

// Calls visit(slab, half, row) for each row of the tile of which the thread holds columns.
template <typename Lists, typename Visit> NSA_DEVICE void for_each_row(const Visit &visit) {
  using Rows = RowVector<int32, Lists::kRows, Lists::kWarps>;
#pragma unroll
  for (int32 slab = 0; slab < Rows::kSlabs; ++slab)
#pragma unroll
    for (int32 half = 0; half < 2; ++half)
      visit(slab, half, Rows::row(slab, half));
}

// Empties all lists.
template <typename Lists> NSA_DEVICE void top_clear(const Lists &lists) {
  for_each_row<Lists>([&](int32, int32, int32 row) {
    for (int32 slot = threadIdx.x % 4; slot < Lists::kSlots; slot += 4)
      lists.key(row, slot) = static_cast<uint64>(slot);
  });
}

// The least key among the slots of a lane, and the number of the slot that holds this key.
struct TopLeast {
  uint64 key;
  int32 slot;
};

// Returns the least key among this lane's slots of the list of a row.
template <typename Lists> NSA_DEVICE TopLeast top_least(const Lists &lists, int32 row) {
  TopLeast least = {~uint64{0}, 0};
#pragma unroll 4
  for (int32 slot = threadIdx.x % 4; slot < Lists::kSlots; slot += 4) {
    const uint64 key = lists.key(row, slot);
    if (key < least.key)
      least = {key, slot};
  }
  return least;
}

// Combines the values of the four lanes that hold a row, and returns the result in all four lanes.
template <typename T, typename Choose> NSA_DEVICE T over_row(T value, const Choose &choose) {
  value = choose(value, shuffle_xor(value, 1));
  return choose(value, shuffle_xor(value, 2));
}

NSA_DEVICE uint64 least_of_row(uint64 key) {
  return over_row(key, [](uint64 a, uint64 b) { return a < b ? a : b; });
}
NSA_DEVICE uint64 greatest_of_row(uint64 key) {
  return over_row(key, [](uint64 a, uint64 b) { return a < b ? b : a; });
}

// In each row, inserts the columns of `scores` whose keys are above the least key in the row's list. Column 0 of
// `scores` has the column number `first`. Registers cannot be indexed at run time, so the loop over the column tiles
// reads only the first column tile, and each step shifts the other column tiles down by one. Usually a column tile has
// no key above the least key in its row's list, and one vote of the warp is enough to skip the insertion. Otherwise the
// insertion repeats until no lane of the warp holds a key above the least key in its row's list. In each repetition,
// the highest key that the lanes of a row hold replaces the least key in the list of the row, if the highest key is
// above the least key.
template <int32 kRows, int32 kCols, int32 kSlots, int32 kWarps>
NSA_DEVICE void top_insert(const TopLists<kRows, kSlots, kWarps> &lists,
                           const Fragment<float, kRows, kCols, kWarps> &scores, int32 first) {
  using Scores = Fragment<float, kRows, kCols, kWarps>;
  for_each_row<TopLists<kRows, kSlots, kWarps>>([&](int32 slab, int32 half, int32 row) {
    Pair<float> pairs[Scores::kTiles];
#pragma unroll
    for (int32 tile = 0; tile < Scores::kTiles; ++tile)
      pairs[tile] = scores.pairs[slab][tile][half];
    TopLeast own = top_least(lists, row);
    uint64 least = least_of_row(own.key);
#pragma unroll 1
    for (int32 tile = 0; tile < Scores::kTiles; ++tile) {
      const int32 column = first + Scores::column(tile, 0);
      uint64 keys[2] = {top_key(pairs[0].get(0), column), top_key(pairs[0].get(1), column + 1)};
      while (any_lane(keys[0] > least || keys[1] > least)) {
        const uint64 better = keys[0] < keys[1] ? keys[1] : keys[0];
        const uint64 best = greatest_of_row(better);
        if (best > least) {
          if (own.key == least)
            lists.key(row, own.slot) = best;
          keys[0] = keys[0] == best ? 0 : keys[0];
          keys[1] = keys[1] == best ? 0 : keys[1];
        }
        own = top_least(lists, row);
        least = least_of_row(own.key);
      }
#pragma unroll
      for (int32 i = 1; i < Scores::kTiles; ++i)
        pairs[i - 1] = pairs[i];
    }
  });
}

// Returns for each row the lowest column in the row's list that is greater than the row's value in `after`. If the list
// has no such column, the result for the row is the largest int32.
template <int32 kRows, int32 kSlots, int32 kWarps>
NSA_DEVICE RowVector<int32, kRows, kWarps> top_next(const TopLists<kRows, kSlots, kWarps> &lists,
                                                    const RowVector<int32, kRows, kWarps> &after) {
  RowVector<int32, kRows, kWarps> result;
  for_each_row<TopLists<kRows, kSlots, kWarps>>([&](int32 slab, int32 half, int32 row) {
    int32 lowest = 0x7fffffff;
#pragma unroll 4
    for (int32 slot = threadIdx.x % 4; slot < kSlots; slot += 4) {
      const int32 column = top_column(lists.key(row, slot));
      lowest = column > after.values[slab][half] ? min(lowest, column) : lowest;
    }
    result.values[slab][half] = over_row(lowest, [](int32 a, int32 b) { return min(a, b); });
  });
  return result;
}

} // namespace nsa
