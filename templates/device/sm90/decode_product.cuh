// The products of a warp with the query heads of a group, in two orientations.
//
// One side of each product is 16 or eight heads. The other side is of items: keys, whose scores are made, columns of V,
// or sums of the importance. A tile is what one product leaves in the registers of a warp, four numbers in each thread.
// An instruction multiplies 16 rows with eight columns. HeadRows makes heads the rows. A group of up to eight heads
// would leave half of the rows empty, so KeyRows makes heads the columns there, and items the rows. It needs half as
// many products.
//
// Scores are the result of one product and the operand of the next. HeadRows has them in the order of a left operand,
// as they are. KeyRows transposes them for a right operand.
#pragma once

#include "layout.cuh"
#include "pair.cuh"
#include "ptx_matrix.cuh"

namespace nsa {

// Rows of 16-bit elements in shared memory, `pitch` bytes apart, from which a lane reads for ldmatrix_x4. The order of
// the four matrices is that of a left operand, or that of two right operands. In transposed form the orders change
// places.
NSA_DEVICE int32 left_offset(int32 lane, int32 pitch) { return lane % 16 * pitch + lane / 16 * kChunkBytes; }
NSA_DEVICE int32 right_offset(int32 lane, int32 pitch) {
  return (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * kChunkBytes;
}

struct HeadRows {
  static constexpr int32 kHeads = 16;                 // of a tile
  static constexpr int32 kItems = 8;                  // of a tile
  static constexpr int32 kHeadWords = 4;              // registers of the operand of heads, for a depth of 16
  static constexpr int32 kItemWords = 2;              // registers of the operand of items
  static constexpr int32 kThreadHeads = 2;            // heads of a thread that exist
  static constexpr int32 kNearest = 1, kFurthest = 2; // distances of lanes that have the same heads
  static constexpr int32 kItemDistance = 1;           // between the two items of a thread
  static constexpr int32 kRegisters = 48;             // of results, and of operands of heads if results leave some
  static constexpr int32 kMostColumns = 64;           // of V for a warp that is not wide (decode_team.cuh)
  // Rows of results in shared memory lie so many numbers further apart than their length, a multiple of 16. So the four
  // rows that half a warp stores at once, eight numbers of each, lie in different banks.
  static constexpr int32 kGap = 8;

  // Of element `i` of a tile: which of the thread's two heads it has.
  NSA_DEVICE static constexpr int32 head_of(int32 i) { return i / 2; }
  // The element of one of the thread's two heads and one of its two items.
  NSA_DEVICE static constexpr int32 element(int32 head, int32 item) { return 2 * head + item; }
  // A head and an item of the thread in the tile.
  NSA_DEVICE static int32 head(int32 number, int32 lane) { return number * 8 + lane / 4; }
  NSA_DEVICE static int32 item(int32 number, int32 lane) { return lane % 4 * 2 + number; }

  NSA_DEVICE static int32 query_offset(int32 lane, int32 pitch) { return left_offset(lane, pitch); }
  NSA_DEVICE static int32 key_offset(int32 lane, int32 pitch) { return right_offset(lane, pitch); }
  NSA_DEVICE static int32 value_offset(int32 lane, int32 pitch) { return left_offset(lane, pitch); }

  // Adds the product of heads and items to the tile.
  template <typename T> NSA_DEVICE static void multiply(float (&tile)[4], const uint32 *heads, const uint32 *items) {
    const uint32 left[4] = {heads[0], heads[1], heads[2], heads[3]};
    mma_m16n8k16(T{}, tile, left, items[0], items[1]);
  }

  // Makes pairs of neighbouring elements of two tiles, which have 16 keys together, the operand of heads.
  NSA_DEVICE static void arrange(uint32 (&heads)[kHeadWords], const uint32 (&pairs)[2][2]) {
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      heads[i] = pairs[i / 2][i % 2];
  }

  // Stores a tile whose first head is `first` at [head][item]: the heads below `heads` and the items below `items`.
  NSA_DEVICE static void store(float *to, int32 pitch, const float (&tile)[4], int32 lane, int32 first, int32 heads,
                               int32 items) {
#pragma unroll
    for (int32 number = 0; number < 2; ++number)
      if (first + head(number, lane) < heads && item(0, lane) < items)
        *reinterpret_cast<Pair<float> *>(to + (first + head(number, lane)) * pitch + item(0, lane)) =
            Pair<float>::make(tile[2 * number], tile[2 * number + 1]);
  }
};

// A thread has two heads, of which the second does not exist in a group of one head.
template <int32 kThreadHeads_> struct KeyRows {
  static constexpr int32 kHeads = 8;
  static constexpr int32 kItems = 16;
  static constexpr int32 kHeadWords = 2;
  static constexpr int32 kItemWords = 4;
  static constexpr int32 kThreadHeads = kThreadHeads_;
  static constexpr int32 kNearest = 4, kFurthest = 16;
  static constexpr int32 kItemDistance = 8;
  static constexpr int32 kRegisters = kThreadHeads == 1 ? 48 : 44;
  static constexpr int32 kMostColumns = 128;
  // A warp stores eight numbers of every second row at once. With this gap four such rows lie in different banks.
  static constexpr int32 kGap = 4;

  NSA_DEVICE static constexpr int32 head_of(int32 i) { return i % 2; }
  NSA_DEVICE static constexpr int32 element(int32 head, int32 item) { return head + 2 * item; }
  NSA_DEVICE static int32 head(int32 number, int32 lane) { return lane % 4 * 2 + number; }
  NSA_DEVICE static int32 item(int32 number, int32 lane) { return number * 8 + lane / 4; }

  NSA_DEVICE static int32 query_offset(int32 lane, int32 pitch) { return lane % 8 * pitch + lane / 8 * kChunkBytes; }
  NSA_DEVICE static int32 key_offset(int32 lane, int32 pitch) { return left_offset(lane, pitch); }
  NSA_DEVICE static int32 value_offset(int32 lane, int32 pitch) { return right_offset(lane, pitch); }

  template <typename T> NSA_DEVICE static void multiply(float (&tile)[4], const uint32 *heads, const uint32 *items) {
    const uint32 left[4] = {items[0], items[1], items[2], items[3]};
    mma_m16n8k16(T{}, tile, left, heads[0], heads[1]);
  }

  NSA_DEVICE static void arrange(uint32 (&heads)[kHeadWords], const uint32 (&pairs)[1][2]) {
#pragma unroll
    for (int32 i = 0; i < 2; ++i)
      heads[i] = transpose_matrix(pairs[0][i]);
  }

  NSA_DEVICE static void store(float *to, int32 pitch, const float (&tile)[4], int32 lane, int32 first, int32 heads,
                               int32 items) {
#pragma unroll
    for (int32 i = 0; i < 4; ++i)
      if (head_of(i) < kThreadHeads && first + head(i % 2, lane) < heads && item(i / 2, lane) < items)
        to[(first + head(i % 2, lane)) * pitch + item(i / 2, lane)] = tile[i];
  }
};

// The orientation for a group of query heads.
template <int32 kGroup, bool kIsSmall = kGroup <= 8> struct OrientationOf {
  using Type = HeadRows;
};
template <int32 kGroup> struct OrientationOf<kGroup, true> {
  using Type = KeyRows<kGroup == 1 ? 1 : 2>;
};

} // namespace nsa
