// Importance and selection against the brute force, and the traps that others fell into (docs/specification.md 13).
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace nsa::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void expectListsOfTheBruteForce(const DrawnNsa &drawn, int threads) {
  const Spec &spec = drawn.spec;
  SCOPED_TRACE(specText(spec));
  const Nsa nsa = drawn.nsa();
  const Compressed compressed = compress(
      {.spec = spec, .k = nsa.kCmp, .v = nsa.vCmp, .phiK = nsa.phiK, .phiV = nsa.phiV, .sequences = nsa.sequences});
  const Selection selection = drawn.selection(compressed);
  for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead) {
    const std::vector<std::vector<double>> expected = blockScoresByMask(selection, kvHead);
    size_t row = 0;
    for (const Sequence &sequence : selection.sequences)
      for (int64_t query = 0; query < sequence.queries; ++query, ++row) {
        const std::vector<double> scores = blockScores(selection, sequence, query, kvHead);
        for (size_t block = 0; block < expected[row].size(); ++block)
          ASSERT_NEAR(block < scores.size() ? scores[block] : 0, expected[row][block], 1e-12)
              << "row " << row << " block " << block;
      }
  }
  expectSameLists(selection, select(selection, threads), selectByMask(selection));
}

TEST(Selection, EqualsTheBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 150; ++round) {
    const Spec spec = drawSpec(random);
    expectListsOfTheBruteForce(drawNsa(random, spec, drawLengths(random, spec, 60)), 1 + round % 3);
  }
}

TEST(Selection, LongListsEqualTheBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (const int32_t selCount : {65, 97, 128})
    expectListsOfTheBruteForce(drawLongLists(random, selCount), 2);
}

// One query head whose compressed keys all score alike: p is 1 / visible for each.
struct EvenScores {
  Spec spec;
  OwnedTensor q, kComp;
  Selection selection;

  EvenScores(const Spec &chosen, int64_t tokens) : spec(chosen) {
    spec.dtype = DType::kF32;
    spec.queryHeads = spec.kvHeads = spec.qkDim = 1;
    q = OwnedTensor::make(DType::kF32, 1, tokens, 1, 1);
    kComp = OwnedTensor::make(DType::kF32, 1, spec.compressedBlocks(tokens), 1, 1);
    for (int64_t time = 0; time < tokens; ++time)
      fillRow(q, 0, time, 0, 0);
    for (int64_t block = 0; block < kComp.times; ++block)
      fillRow(kComp, 0, block, 0, 0);
    selection = {.spec = spec, .q = q.view(), .kComp = kComp.view(), .sequences = denseSequences(1, tokens, tokens)};
  }
  std::vector<double> scores(int64_t query) const { return blockScores(selection, selection.sequences[0], query, 0); }
  std::vector<int32_t> list(int64_t query) const { return chooseBlocks(scores(query), spec); }
};

TEST(Selection, WeightsAreOneTwoTwoTwoOne) {
  EvenScores even({}, 320); // 32/16/64: N_c is 19
  // Only block c scores: a very large one takes the whole softmax.
  for (int64_t c = 0; c < 19; ++c) {
    for (int64_t time = 0; time < 320; ++time)
      fillRow(even.q, 0, time, 0, 1);
    for (int64_t block = 0; block < 19; ++block)
      fillRow(even.kComp, 0, block, 0, block == c ? 1000 : 0);
    const std::vector<double> scores = even.scores(319);
    ASSERT_EQ(scores.size(), 5u);
    for (int64_t j = 0; j < 5; ++j) {
      const int64_t offset = c - 4 * j; // blocks 4j-1 .. 4j+3
      const double weight = offset == -1 || offset == 3 ? 1 : offset >= 0 && offset <= 2 ? 2 : 0;
      EXPECT_NEAR(scores[j], weight, 1e-9) << "block " << j << " compressed block " << c;
    }
  }
}

TEST(Selection, ScoresOfAQueryShareTheVisibleBlocksOnly) {
  // Weights of a compressed block sum to l / d, so all scores of a query sum to h * l / d: whatever the future holds.
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 20; ++round) {
    const Spec spec = drawSpec(random);
    DrawnNsa drawn = drawNsa(random, spec, denseLengths(1, 40, 40));
    const Nsa nsa = drawn.nsa();
    Compressed compressed = compress(
        {.spec = spec, .k = nsa.kCmp, .v = nsa.vCmp, .phiK = nsa.phiK, .phiV = nsa.phiV, .sequences = nsa.sequences});
    const Selection selection = drawn.selection(compressed);
    const BlockLists clean = select(selection);
    const int64_t position = static_cast<int64_t>(random() % 40);
    const int64_t visible = spec.compressedBlocks(position + 1);
    for (int64_t block = visible; block < compressed.k.times; ++block)
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        fillRow(compressed.k, 0, block, head, block % 2 ? kNan : 1e30);
    const Selection poisoned = drawn.selection(compressed);
    const BlockLists lists = select(poisoned);
    for (int64_t head = 0; head < spec.kvHeads; ++head) {
      const std::vector<double> scores = blockScores(poisoned, poisoned.sequences[0], position, head);
      EXPECT_NEAR(std::accumulate(scores.begin(), scores.end(), 0.0),
                  visible ? static_cast<double>(spec.group()) * spec.cmpBlock / spec.cmpStride : 0, 1e-9);
      for (int64_t row = 0; row <= position; ++row)
        ASSERT_TRUE(std::ranges::equal(lists.at(row, head), clean.at(row, head))) << "row " << row;
    }
  }
}

TEST(Selection, EqualScoresTakeTheLowerBlocks) {
  // The last query's interior blocks score alike to the bit.
  const EvenScores even(
      {.cmpBlock = 4, .cmpStride = 4, .selBlock = 8, .selCount = 5, .initBlocks = 1, .localBlocks = 1}, 10000);
  const std::vector<double> scores = even.scores(9999);
  ASSERT_EQ(scores[7], scores[700]);
  EXPECT_EQ(even.list(9999), (std::vector<int32_t>{0, 1, 2, 3, 1249}));
}

TEST(Selection, ATinyDifferenceBeatsAnyIndex) {
  // 1e-8 per index, the usual hack, would put block 0 before block 1000 here.
  Spec spec{.selCount = 2, .initBlocks = 0, .localBlocks = 1};
  std::vector<double> scores(2000, 16.0);
  scores[1000] += 1e-12;
  EXPECT_EQ(chooseBlocks(scores, spec), (std::vector<int32_t>{1000, 1999}));
}

TEST(Selection, NanRanksLast) {
  Spec spec{.selCount = 4, .initBlocks = 0, .localBlocks = 1};
  EXPECT_EQ(chooseBlocks(std::vector<double>{kNan, 0, kNan, -kNan, 2, 1, 0}, spec), (std::vector<int32_t>{1, 4, 5, 6}));
  EXPECT_EQ(chooseBlocks(std::vector<double>{kNan, kNan, 1, -kNan, kNan, kNan, 0}, spec),
            (std::vector<int32_t>{0, 1, 2, 6})); // among themselves: lower first
  EXPECT_EQ(chooseBlocks(std::vector<double>{1, kNan, 3, std::numeric_limits<double>::infinity(), 2, kNan}, spec),
            (std::vector<int32_t>{2, 3, 4, 5})); // a forced block may be NaN
}

TEST(Selection, ANanAmongVisibleKeysLeavesTheBlocksThatItDoesNotReach) {
  EvenScores even({.cmpBlock = 4, .cmpStride = 4, .selBlock = 8, .selCount = 3, .initBlocks = 0, .localBlocks = 1}, 70);
  fillRow(even.kComp, 0, 2, 0, kNan);
  const std::vector<double> scores = even.scores(69);
  EXPECT_TRUE(std::isnan(scores[0])); // the softmax has no normaliser
  EXPECT_EQ(even.list(69), (std::vector<int32_t>{0, 1, 8}));
  EXPECT_EQ(even.list(9), (std::vector<int32_t>{0, 1})); // before it is visible
}

TEST(Selection, ForcedBlocksCountOnce) {
  const Spec spec{.selCount = 4, .initBlocks = 1, .localBlocks = 2};
  // b = 0, 1: forced ones coincide, and every block is chosen.
  EXPECT_EQ(chooseBlocks(std::vector<double>{0}, spec), (std::vector<int32_t>{0}));
  EXPECT_EQ(chooseBlocks(std::vector<double>{0, 0}, spec), (std::vector<int32_t>{0, 1}));
  // b = 5: 0, 4 and 5 are forced though they score nothing, and one place is left.
  EXPECT_EQ(chooseBlocks(std::vector<double>{0, 1, 3, 2, 0, 0}, spec), (std::vector<int32_t>{0, 2, 4, 5}));
  // Up to n blocks all are chosen.
  EXPECT_EQ(chooseBlocks(std::vector<double>{0, 1, 3, 2}, spec), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(Selection, TheOwnIncompleteBlockIsAlwaysThere) {
  const EvenScores even(
      {.cmpBlock = 4, .cmpStride = 2, .selBlock = 8, .selCount = 3, .initBlocks = 1, .localBlocks = 1}, 61);
  const BlockLists lists = select(even.selection);
  for (int64_t position = 0; position < 61; ++position) {
    const std::span<const int32_t> list = lists.at(position, 0);
    const int64_t own = position / 8;
    EXPECT_TRUE(std::ranges::find(list, own) != list.end()) << "position " << position;
    EXPECT_EQ(std::ranges::count(list, -1), std::max<int64_t>(0, 2 - own));
  }
}

TEST(Selection, WithoutVisibleBlocksLowerBlocksAreChosen) {
  // l is long: selection blocks exist before any compressed one is visible.
  const EvenScores even(
      {.cmpBlock = 64, .cmpStride = 4, .selBlock = 4, .selCount = 4, .initBlocks = 0, .localBlocks = 1}, 64);
  for (const double score : even.scores(62))
    EXPECT_EQ(score, 0);
  EXPECT_EQ(even.list(62), (std::vector<int32_t>{0, 1, 2, 15}));
}

TEST(Selection, HeadsOfAGroupShareTheirScores) {
  std::mt19937_64 random(test::freshSeed());
  Spec spec{.dtype = DType::kF32,
            .queryHeads = 6,
            .kvHeads = 2,
            .qkDim = 3,
            .vDim = 1,
            .cmpBlock = 4,
            .cmpStride = 2,
            .selBlock = 4};
  const OwnedTensor q = drawTensor(random, DType::kF32, 1, 1, 6, 3);
  const OwnedTensor kComp = drawTensor(random, DType::kF32, 1, spec.compressedBlocks(30), 2, 3);
  const Selection all{.spec = spec, .q = q.view(), .kComp = kComp.view(), .sequences = denseSequences(1, 1, 30)};
  // The sum over single heads: query head g*h + i belongs to group g.
  for (int64_t group = 0; group < 2; ++group) {
    std::vector<double> sum(8, 0.0);
    for (int64_t i = 0; i < 3; ++i) {
      Selection one = all;
      one.spec.queryHeads = one.spec.kvHeads = 1;
      one.q.data += (group * 3 + i) * one.q.headStride * 4;
      one.kComp.data += group * one.kComp.headStride * 4;
      const std::vector<double> scores = blockScores(one, one.sequences[0], 0, 0);
      for (size_t block = 0; block < sum.size(); ++block)
        sum[block] += scores[block];
    }
    expectNear(blockScores(all, all.sequences[0], 0, group), sum, 1e-12, "group " + std::to_string(group));
  }
}

} // namespace
} // namespace nsa::reference
