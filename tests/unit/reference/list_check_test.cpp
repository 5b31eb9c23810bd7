// When another list than the reference's is right, and what is said of one that is wrong.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/list_check.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace nsa::reference {
namespace {

// b = 7; 0 and 7 are forced, two places are left.
const Spec kSpec{.dtype = DType::kBf16, .selCount = 4, .initBlocks = 1, .localBlocks = 1};
const std::vector<double> kScores = {0, 1, 5, 4, 4 - 2e-4, 3, 2, 0};

::testing::AssertionResult says(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << text << "' does not say '" << part << "'";
}

std::string errorOf(const std::vector<double> &scores, const std::vector<int32_t> &list, const Spec &spec = kSpec) {
  return listError(scores, spec, list);
}

TEST(ListCheck, TheReferencesListIsRight) {
  EXPECT_EQ(errorOf(kScores, {0, 2, 3, 7}), "");
  EXPECT_EQ(errorOf({1, 2}, {0, 1, -1, -1}), "");
}

TEST(ListCheck, ATieMayGoEitherWay) {
  EXPECT_EQ(errorOf(kScores, {0, 2, 4, 7}), ""); // 2e-4 of 4 is 5e-5
  EXPECT_LT(selectionMargin(kScores, kSpec), tieMargin(DType::kBf16));
  Spec fp32 = kSpec;
  fp32.dtype = DType::kF32;
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 4, 7}, fp32), "block 4"));
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 4, 7}, fp32), "block 3"));
  EXPECT_EQ(tieMargin(DType::kF16), 1e-4);
  EXPECT_EQ(tieMargin(DType::kF32), 1e-5);
}

TEST(ListCheck, ATieExcusesNothingElse) {
  EXPECT_TRUE(says(errorOf(kScores, {0, 3, 4, 7}), "block 2")); // 4 for 2, though 3 and 4 tie
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 5, 7}), "block 5"));
  EXPECT_TRUE(says(errorOf(kScores, {0, 1, 2, 7}), "block 1"));
}

TEST(ListCheck, ScoresOfZeroDoNotTie) {
  const std::vector<double> scores = {0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(errorOf(scores, {0, 1, 2, 7}), "");
  EXPECT_NE(errorOf(scores, {0, 1, 3, 7}), "");
  EXPECT_TRUE(std::isinf(selectionMargin(scores, kSpec)));
}

TEST(ListCheck, ScoresBelowWhatFp32HoldsTie) {
  const double tiny = 0x1p-101, tinier = 0x1p-700;
  const std::vector<double> scores = {0, tinier, 5, tiny, 0, tinier, 2 * tinier, 0};
  EXPECT_EQ(errorOf(scores, {0, 2, 3, 7}), "");
  for (const int32_t flushed : {1, 5, 6})
    for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
      Spec spec = kSpec;
      spec.dtype = dtype;
      std::vector<int32_t> list = {0, 2, flushed, 7};
      std::ranges::sort(list);
      EXPECT_EQ(errorOf(scores, list, spec), "") << flushed;
      EXPECT_EQ(selectionMargin(scores, spec), 0);
    }
  EXPECT_EQ(errorOf(scores, {0, 2, 4, 7}), "");                // a zero for what a kernel flushes to one
  EXPECT_TRUE(says(errorOf(scores, {0, 1, 3, 7}), "block 2")); // and nothing else
}

TEST(ListCheck, AScoreThatFp32HoldsDoesNotTieWithOneThatItDoesNot) {
  const std::vector<double> scores = {0, 0, 5, 0x1p-100, 0, 0x1.ffcp-101, 0, 0};
  EXPECT_EQ(errorOf(scores, {0, 2, 3, 7}), "");
  for (const int32_t lower : {4, 5, 6})
    EXPECT_TRUE(says(errorOf(scores, {0, 2, lower, 7}), "block 3")) << lower;
  EXPECT_GT(selectionMargin(scores, kSpec), tieMargin(DType::kBf16));
  const std::vector<double> both = {0, 0, 5, 0x1.8p-99, 0, 0x1p-100, 0, 0};
  EXPECT_TRUE(says(errorOf(both, {0, 2, 5, 7}), "block 3"));
  EXPECT_NEAR(selectionMargin(both, kSpec), 2.0 / 3, 1e-12);
}

TEST(ListCheck, NanScoresDoNotTie) {
  const double nan = std::nan("");
  const std::vector<double> scores = {0, nan, nan, 1, nan, nan, nan, 0};
  EXPECT_EQ(errorOf(scores, {0, 1, 3, 7}), "");
  EXPECT_NE(errorOf(scores, {0, 2, 3, 7}), ""); // lower first
  EXPECT_NE(errorOf(scores, {0, 1, 2, 7}), ""); // NaN before a number
  const std::vector<double> withTiny = {0, nan, 1, 0x1p-200, nan, nan, nan, 0};
  EXPECT_TRUE(says(errorOf(withTiny, {0, 1, 2, 7}), "block 3")); // however small the number is
}

TEST(ListCheck, AMalformedListIsWrong) {
  EXPECT_TRUE(says(errorOf(kScores, {0, 3, 2, 7}), "ascending"));
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 2, 7}), "unique"));
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 3, 8}), "slot 3 holds 8"));
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 7, -1}), "slot 3 holds -1"));
  EXPECT_TRUE(says(errorOf(kScores, {-1, 0, 2, 7}), "slot 0 holds -1"));
  EXPECT_TRUE(says(errorOf(kScores, {1, 2, 3, 7}), "forced block 0"));
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 3, 4}), "forced block 7"));
  EXPECT_TRUE(says(errorOf({1, 2}, {0, 1, 0, -1}), "slot 2 holds 0"));
  EXPECT_TRUE(says(errorOf(kScores, {0, 2, 3}), "3 slots"));
}

TEST(ListCheck, MarginIsOfTheBorder) {
  EXPECT_NEAR(selectionMargin(kScores, kSpec), 2e-4 / 4, 1e-12);
  EXPECT_TRUE(std::isinf(selectionMargin(std::vector<double>{1, 2, 3, 4}, kSpec))); // every block is chosen
  Spec forcedOnly = kSpec;
  forcedOnly.selCount = 2;
  EXPECT_TRUE(std::isinf(selectionMargin(kScores, forcedOnly)));
}

struct CheckedBatch : ::testing::Test {
  std::mt19937_64 random{test::freshSeed()};
  Spec spec{.op = Operator::kNsa,
            .dtype = DType::kF32,
            .queryHeads = 4,
            .kvHeads = 2,
            .qkDim = 5,
            .vDim = 3,
            .cmpBlock = 4,
            .cmpStride = 2,
            .selBlock = 4,
            .selCount = 5,
            .initBlocks = 1,
            .localBlocks = 2};
  DrawnNsa drawn = drawNsa(random, spec, packedLengths({30, 0, 61}, {40, 3, 61}, spec));
  Compressed compressed =
      compress({.spec = spec, .k = drawn.kCmp.view(), .v = drawn.vCmp.view(), .sequences = drawn.lengths.sequences});
  Selection selection = drawn.selection(compressed);
  BlockLists lists = select(selection);
};

TEST_F(CheckedBatch, TheReferencesListsAreRight) {
  const ListReport report = checkLists(selection, lists, 2);
  EXPECT_TRUE(report.isRight()) << report.toString();
  EXPECT_EQ(report.lists, 2 * 91);
  EXPECT_EQ(report.differing, 0);
}

TEST_F(CheckedBatch, TheFirstWrongRowIsExplained) {
  // Rows 80 and 70, queries 50 and 40 of the last sequence, leave the best unforced block for the worst one.
  for (const int64_t row : {80, 70}) {
    const std::vector<double> scores = blockScores(selection, selection.sequences[2], row - 30, 1);
    const std::span<int32_t> list = lists.at(row, 1);
    int32_t best = -1, worst = -1;
    for (int32_t block = 0; block < static_cast<int32_t>(scores.size()); ++block) {
      if (isForced(spec, block, static_cast<int64_t>(scores.size()) - 1))
        continue;
      best = best < 0 || ranksBefore(scores, block, best) ? block : best;
      worst = worst < 0 || ranksBefore(scores, worst, block) ? block : worst;
    }
    *std::ranges::find(list, best) = worst;
    std::ranges::sort(list);
  }
  const ListReport report = checkLists(selection, lists);
  EXPECT_FALSE(report.isRight());
  EXPECT_EQ(report.wrong, 2);
  EXPECT_TRUE(says(report.firstWrong, "row 70 (query 40 of 61, position 40), kv head 1"));
  EXPECT_TRUE(says(report.firstWrong, "is chosen and block"));
  EXPECT_TRUE(says(report.toString(), "2 wrong"));
}

TEST_F(CheckedBatch, TiesAreCounted) {
  // All keys alike: every border is a tie, and exchanging the last unforced block is right.
  std::fill(compressed.k.bytes.begin(), compressed.k.bytes.end(), std::byte{0});
  lists = select(selection);
  const std::span<int32_t> list = lists.at(90, 0);
  ASSERT_EQ(std::vector<int32_t>(list.begin(), list.end()), (std::vector<int32_t>{0, 1, 2, 14, 15}));
  list[2] = 3;
  const ListReport report = checkLists(selection, lists);
  EXPECT_TRUE(report.isRight()) << report.toString();
  EXPECT_EQ(report.differing, 1);
  EXPECT_GT(report.ties, 0);
}

} // namespace
} // namespace nsa::reference
