// Numbers that the keys of problems fix: what the templates and the workspace take for granted.
#include "runtime/base/key_splits.h"

#include <gtest/gtest.h>

#include <bit>

namespace nsa {
namespace {

Spec decodeSpec(int32_t selBlock = 64, int32_t selCount = 16) {
  Spec spec;
  spec.op = Operator::kDecode;
  spec.queryHeads = 64;
  spec.kvHeads = 4;
  spec.qkDim = spec.vDim = 128;
  spec.selBlock = selBlock;
  spec.selCount = selCount;
  return spec;
}

Maxima tokens(int64_t batch, int64_t keys) { return {.batch = batch, .tokensQ = batch, .seqlenQ = 1, .seqlenK = keys}; }

TEST(RankSegment, FewBlocksAreNoSegments) {
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(1, 0)), 0);
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(1, 4096)), 0);
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(64, 16384)), 0);
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(1, 32768)), 0);
  // Many queries are many comparisons, and one query's are one after the other.
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(64, 32768)), 128);
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(1, 65536)), 128);
}

TEST(RankSegment, GrowsWithTheRootOfTheBlocks) {
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(64, 65536)), 128);
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(64, 262144)), 256);
  EXPECT_EQ(rankSegment(decodeSpec(), tokens(64, 1 << 20)), 512);
  EXPECT_EQ(rankSegment(decodeSpec(64, 64), tokens(1, 1 << 20)), 1024);
  EXPECT_EQ(rankSegment(decodeSpec(64, 128), tokens(1, 1 << 20)), 2048);
  EXPECT_EQ(rankSegment(decodeSpec(16, 3), tokens(1, 1 << 24)), 4096);
}

// Stored keys have the segment of shorter lists.
TEST(RankSegment, OneSegmentOfAllBlocksIsNotRankedForLongLists) {
  EXPECT_EQ(rankSegment(decodeSpec(64, 64), tokens(4096, 8192)), 128);
  EXPECT_EQ(rankSegment(decodeSpec(64, 65), tokens(4096, 8192)), 0);
  EXPECT_EQ(rankSegment(decodeSpec(64, 64), tokens(1024, 16384)), 128);
  EXPECT_EQ(rankSegment(decodeSpec(64, 128), tokens(1024, 16384)), 0);
  EXPECT_EQ(rankSegment(decodeSpec(64, 128), tokens(1024, 32768)), 256);
}

TEST(RankSegment, IsWholeTilesAndNoLessThanItKeeps) {
  for (int32_t selCount : {3, 16, 17, 64, 65, 97, 128})
    for (int32_t selBlock : {1, 16, 60, 64, 128})
      for (int64_t batch : {1, 3, 64, 5000})
        for (int64_t keys = 1; keys <= 1 << 24; keys = 2 * keys + 1) {
          const Spec spec = decodeSpec(selBlock, selCount);
          const int64_t segment = rankSegment(spec, tokens(batch, keys)), kept = keptOfSegment(spec);
          SCOPED_TRACE(testing::Message()
                       << selCount << " of blocks of " << selBlock << ", " << batch << " x " << keys);
          EXPECT_EQ(kept % 16, 0);
          EXPECT_GE(kept, selCount);
          // One stored choice has one answer.
          const auto bucket = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(keys)));
          EXPECT_EQ(segment, rankSegment(spec, tokens(batch, bucket)));
          if (segment == 0)
            continue;
          EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(segment)));
          EXPECT_GE(segment, 128);
          EXPECT_GE(segment, kept);
          if (selCount > 64)
            EXPECT_LT(segment * selBlock, bucket) << "one segment has all blocks";
        }
}

// What was measured stands in the place of the number that is wanted, where there are keys enough.
TEST(KeySplits, AGivenNumberIsAnUpperLimit) {
  Spec spec = decodeSpec();
  const Maxima maxima = {.batch = 1, .tokensQ = 1, .seqlenQ = 1, .seqlenK = 65536};
  const std::array<int64_t, 3> most = [&] {
    spec.keySplits = KeySplits::kMost;
    return KeySplits::make(spec, maxima).counts;
  }();
  for (const int32_t splits : {1, 2, 4, 8}) {
    spec.keySplits = splits;
    const KeySplits made = KeySplits::make(spec, maxima);
    for (size_t branch = 0; branch < most.size(); ++branch)
      EXPECT_EQ(made.counts[branch], std::min<int64_t>(splits, most[branch]));
  }
}

// Numbers of 32 bits each, whose products are of more than 64.
TEST(KeySplits, TheLargestRequestsAreMany) {
  const int64_t most = (int64_t{1} << 31) - 1;
  Spec spec = decodeSpec();
  for (const int32_t kvHeads : {1 << 20, 1 << 30}) {
    spec.kvHeads = spec.queryHeads = kvHeads;
    for (const int64_t batch : {int64_t{1} << 30, most})
      for (const int64_t queries : {int64_t{1}, int64_t{8}, most}) {
        const Maxima maxima = {.batch = batch, .tokensQ = most, .seqlenQ = queries, .seqlenK = 1 << 24};
        EXPECT_TRUE(hasManyQueries(spec, maxima)) << kvHeads << ' ' << batch << ' ' << queries;
        EXPECT_TRUE(hasManyRows(spec, maxima)) << kvHeads << ' ' << batch << ' ' << queries;
        EXPECT_EQ(KeySplits::make(spec, maxima).counts, (std::array<int64_t, 3>{1, 1, 1}));
        EXPECT_GE(rankSegment(spec, {.batch = batch, .tokensQ = most, .seqlenQ = queries, .seqlenK = 4096}), 128);
      }
  }
}

} // namespace
} // namespace nsa
