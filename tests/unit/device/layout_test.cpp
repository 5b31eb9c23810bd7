// Index arithmetic of the device library, compiled by the host: every element has one place, and eight rows that
// ldmatrix reads together lie in different banks.
#include "layout.cuh"

#include <gtest/gtest.h>
#include <set>
#include <tuple>

using namespace nsa;

namespace {

constexpr int kMostChunks = 64;

TEST(Swizzle, GivesEachChunkOfATileItsOwnPlace) {
  for (int chunks = 1; chunks <= kMostChunks; ++chunks) {
    std::set<int> places;
    for (int row = 0; row < 16; ++row)
      for (int chunk = 0; chunk < chunks; ++chunk) {
        int place = swizzled_chunk(row, chunk, chunks);
        EXPECT_GE(place, row * chunks);
        EXPECT_LT(place, (row + 1) * chunks) << "a chunk left its row: " << chunks << " chunks, row " << row;
        places.insert(place);
      }
    EXPECT_EQ(places.size(), 16u * chunks);
  }
}

TEST(Swizzle, EightRowsOfAChunkColumnLieInDifferentBanks) {
  for (int chunks = 1; chunks <= kMostChunks; ++chunks)
    for (int firstRow = 0; firstRow < 64; firstRow += 8)
      for (int chunk = 0; chunk < chunks; ++chunk) {
        std::set<int> banks;
        for (int row = firstRow; row < firstRow + 8; ++row)
          banks.insert(swizzled_chunk(row, chunk, chunks) % 8);
        EXPECT_EQ(banks.size(), 8u) << chunks << " chunks, rows from " << firstRow << ", chunk " << chunk;
      }
}

TEST(Swizzle, RepeatsEveryEightRows) {
  for (int chunks = 1; chunks <= kMostChunks; ++chunks)
    for (int row = 0; row < 8; ++row)
      for (int chunk = 0; chunk < chunks; ++chunk)
        EXPECT_EQ(swizzled_chunk(row + 8, chunk, chunks), swizzled_chunk(row, chunk, chunks) + 8 * chunks);
}

TEST(Fragment, HoldsEachElementOnce) {
  constexpr int kColumns = 24;
  for (int warps : {1, 2, 4, 8})
    for (int slabs : {1, 2}) {
      std::set<std::tuple<int, int>> elements;
      for (int thread = 0; thread < 32 * warps; ++thread)
        for (int slab = 0; slab < slabs; ++slab)
          for (int half = 0; half < 2; ++half)
            for (int tile = 0; tile < kColumns / kTileColumns; ++tile)
              for (int index = 0; index < 2; ++index)
                EXPECT_TRUE(
                    elements.insert({fragment_row(thread, slabs, slab, half), fragment_column(thread, tile, index)})
                        .second);
      EXPECT_EQ(elements.size(), static_cast<size_t>(16 * slabs * warps * kColumns));
      EXPECT_EQ(*elements.begin(), std::make_tuple(0, 0));
      EXPECT_EQ(*elements.rbegin(), std::make_tuple(16 * slabs * warps - 1, kColumns - 1));
    }
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16": c0, c1 in row lane / 4, c2, c3 eight rows below; columns 2 * (lane % 4)
// + i.
TEST(Fragment, IsTheAccumulatorOfThePtxManual) {
  EXPECT_EQ(fragment_row(0, 1, 0, 0), 0);
  EXPECT_EQ(fragment_row(31, 1, 0, 0), 7);
  EXPECT_EQ(fragment_row(31, 1, 0, 1), 15);
  EXPECT_EQ(fragment_row(32, 1, 0, 0), 16);
  EXPECT_EQ(fragment_row(32, 2, 1, 0), 48);
  EXPECT_EQ(fragment_column(0, 0, 1), 1);
  EXPECT_EQ(fragment_column(3, 0, 0), 6);
  EXPECT_EQ(fragment_column(30, 2, 1), 21);
}

} // namespace
