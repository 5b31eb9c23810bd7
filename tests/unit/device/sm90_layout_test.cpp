// Index arithmetic of the device library for sm_90a, compiled by the host: where the copy engine's swizzle puts an
// element, what a descriptor holds, and where a role stands in a ring.
#include "sm90/barrier_ring.cuh"
#include "sm90/descriptor.cuh"

#include <gtest/gtest.h>
#include <set>

using namespace nsa;

namespace {

constexpr int kBytes = 2; // of an element
constexpr int kSwizzles[] = {kSwizzle128, kSwizzle64, kSwizzle32};

// The rule of the PTX ISA in its own words: in eight (four, two) units of 16 bytes a row, the unit's number is added
// without carry to that of the 128 bytes in which it stands.
int ruledOffset(int row, int unit, int swizzle) {
  const int units = swizzle / 16, line = row * swizzle / 128;
  return row * swizzle + 16 * (unit ^ line % units);
}

TEST(ChunkedTile, FollowsTheRuleOfTheSwizzle) {
  for (const int swizzle : kSwizzles)
    for (int row = 0; row < 64; ++row)
      for (int unit = 0; unit < swizzle / 16; ++unit)
        for (int element = 0; element < 16 / kBytes; ++element)
          EXPECT_EQ(chunked_offset(row, unit * 16 / kBytes + element, 64, swizzle, kBytes),
                    ruledOffset(row, unit, swizzle) + element * kBytes)
              << swizzle << ": row " << row << ", unit " << unit;
}

TEST(ChunkedTile, HoldsEachElementOnce) {
  for (const int swizzle : kSwizzles)
    for (const int rows : {8, 64, 80, 176})
      for (const int columns : {16, 64, 72, 192}) {
        std::set<int> places;
        for (int row = 0; row < rows; ++row)
          for (int column = 0; column < columns; ++column)
            places.insert(chunked_offset(row, column, rows, swizzle, kBytes));
        EXPECT_EQ(places.size(), static_cast<size_t>(rows * columns));
        EXPECT_LT(*places.rbegin(), chunk_count(columns, swizzle, kBytes) * chunk_bytes(rows, swizzle));
      }
}

TEST(ChunkedTile, EightRowsOfAUnitLieInDifferentBanks) {
  for (int first = 0; first < 64; first += 8)
    for (int unit = 0; unit < 8; ++unit) {
      std::set<int> banks;
      for (int row = first; row < first + 8; ++row)
        banks.insert(chunked_offset(row, unit * 8, 64, kSwizzle128, kBytes) % 128 / 16);
      EXPECT_EQ(banks.size(), 8u);
    }
}

struct Fields {
  int address, leading, stride, mode;
};
Fields fieldsOf(uint64 descriptor) {
  return {static_cast<int>(descriptor & 0x3fff) << 4, static_cast<int>(descriptor >> 16 & 0x3fff) << 4,
          static_cast<int>(descriptor >> 32 & 0x3fff) << 4, static_cast<int>(descriptor >> 62)};
}

TEST(Descriptor, HoldsWhatWgmmaReads) {
  const Fields keys = fieldsOf(depth_major_descriptor(0x2400, kSwizzle128));
  EXPECT_EQ(keys.address, 0x2400);
  EXPECT_EQ(keys.stride, 1024) << "from eight rows to the next";
  EXPECT_EQ(keys.mode, 1);
  EXPECT_EQ(depth_major_descriptor(0x2400, kSwizzle128) >> 46 & 0xffff, 0u) << "no offset of the base";
  const Fields values = fieldsOf(row_depth_descriptor(0x2400, 80, kSwizzle64));
  EXPECT_EQ(values.address, 0x2400);
  EXPECT_EQ(values.leading, 80 * 64) << "from chunk to chunk";
  EXPECT_EQ(values.stride, 512);
  EXPECT_EQ(values.mode, 2);
  EXPECT_EQ(fieldsOf(depth_major_descriptor(0, kSwizzle32)).mode, 3);
}

// A shared address of a cluster's second block has a bit far above what shared memory holds: it is of no other field.
TEST(Descriptor, LeavesTheBlocksNumberOut) {
  for (const uint32 block : {1u, 7u, 15u}) {
    const uint32 address = 0x34400 | block << 24;
    EXPECT_EQ(depth_major_descriptor(address, kSwizzle128), depth_major_descriptor(0x34400, kSwizzle128));
    EXPECT_EQ(row_depth_descriptor(address, 176, kSwizzle128), row_depth_descriptor(0x34400, 176, kSwizzle128));
  }
}

// What is added to a descriptor moves its address alone, to the last tile of 227 KB.
TEST(Descriptor, StepsMoveTheAddress) {
  const uint64 base = row_depth_descriptor(1024 | 1u << 24, 80, kSwizzle128); // of a cluster's second block
  for (int bytes = 0; bytes + 1024 < 227 * 1024; bytes += 1024)
    EXPECT_EQ(base + descriptor_step(bytes), row_depth_descriptor(1024 + static_cast<uint32>(bytes), 80, kSwizzle128));
}

// Parts begin where their first element stands, which the swizzle leaves in its place.
TEST(Descriptor, PartsBeginAtTheirFirstElement) {
  for (const int swizzle : kSwizzles)
    for (int depth = 0; depth < 192; depth += kWgmmaDepth) {
      EXPECT_EQ(depth_major_offset(depth, 80, swizzle), chunked_offset(0, depth, 80, swizzle, kBytes));
      EXPECT_EQ(row_depth_offset(depth, swizzle), chunked_offset(depth, 0, 192, swizzle, kBytes));
    }
}

template <uint32 kStages> void walkRing() {
  SCOPED_TRACE(kStages);
  RingPlace<kStages> place, before = RingPlace<kStages>::before_first();
  before.advance();
  for (uint32 step = 0; step < 5 * kStages; ++step) {
    EXPECT_EQ(place.stage(), static_cast<int32>(step % kStages));
    EXPECT_EQ(place.full_parity(), static_cast<int32>(step / kStages % 2));
    EXPECT_EQ(place.empty_parity(), static_cast<int32>((step / kStages + 1) % 2));
    EXPECT_EQ(before.stage(), place.stage());
    EXPECT_EQ(before.full_parity(), place.full_parity());
    const RingPlace<kStages> next = place.next();
    place.advance();
    before.advance();
    EXPECT_EQ(next.stage(), place.stage());
    EXPECT_EQ(next.full_parity(), place.full_parity());
  }
}
TEST(Ring, GoesRoundAndRound) {
  walkRing<1>();
  walkRing<2>();
  walkRing<3>();
  walkRing<4>();
  walkRing<5>();
  walkRing<8>();
}

} // namespace
