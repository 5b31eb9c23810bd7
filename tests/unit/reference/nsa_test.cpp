// The whole forward pass: against the brute force, and properties that hold whatever the numbers are.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::reference {
namespace {

constexpr size_t kCmp = 0, kSel = 1, kWin = 2;

// Where rounding falls on the other side, reference and brute force would part: compressed rows are compared on their
// own, and given to both.
Compressed giveCompressed(Nsa &nsa) {
  Compressed compressed = compressByMask(
      {.spec = nsa.spec, .k = nsa.kCmp, .v = nsa.vCmp, .phiK = nsa.phiK, .phiV = nsa.phiV, .sequences = nsa.sequences});
  nsa.kComp = compressed.k.view();
  nsa.vComp = compressed.v.view();
  return compressed;
}

void expectForwardOfTheBruteForce(const DrawnNsa &drawn, int threads) {
  SCOPED_TRACE(specText(drawn.spec));
  Nsa nsa = drawn.nsa();
  const Compressed compressed = giveCompressed(nsa);
  const NsaResult actual = forward(nsa, threads);
  if (drawn.spec.hasBranch(kBranchSel)) {
    const Selection selection = drawn.selection(compressed);
    expectSameLists(selection, actual.blockLists, selectByMask(selection));
    nsa.blockLists = listView(actual.blockLists, drawn.lengths);
  }
  expectSame(actual, forwardByMask(nsa));
}

TEST(Nsa, EqualsTheBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 100; ++round) {
    const Spec spec = drawSpec(random);
    expectForwardOfTheBruteForce(drawNsa(random, spec, drawLengths(random, spec, 45)), 1 + round % 3);
  }
}

TEST(Nsa, WithLongListsEqualsTheBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (const int32_t selCount : {65, 97, 128})
    expectForwardOfTheBruteForce(drawLongLists(random, selCount), 2);
}

TEST(Nsa, AttendsItsOwnCompressedRows) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 20; ++round) {
    Spec spec = drawSpec(random);
    spec.branches = kAllBranches;
    const DrawnNsa drawn = drawNsa(random, spec, drawLengths(random, spec, 45));
    const NsaResult computed = forward(drawn.nsa());
    Nsa given = drawn.nsa();
    given.kComp = computed.compressed.k.view();
    given.vComp = computed.compressed.v.view();
    expectSame(forward(given), computed);
  }
}

TEST(Nsa, GivenListsReplaceTheSelection) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 20; ++round) {
    Spec spec = drawSpec(random);
    spec.branches = kAllBranches;
    const DrawnNsa drawn = drawNsa(random, spec, drawLengths(random, spec, 45));
    Nsa nsa = drawn.nsa();
    const Compressed compressed = giveCompressed(nsa);
    BlockLists lists = BlockLists::make(rowEnd(nsa.sequences), spec.kvHeads, spec.selCount);
    for (int64_t row = 0; row < rowEnd(nsa.sequences); ++row)
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        lists.at(row, head)[0] = static_cast<int32_t>(random() % 3) - 1;
    nsa.blockLists = listView(lists, drawn.lengths);
    SCOPED_TRACE(specText(spec));
    const NsaResult result = forward(nsa);
    expectSame(result, forwardByMask(nsa));
    EXPECT_EQ(result.blockLists.blocks, lists.blocks);
  }
}

TEST(Nsa, SomeRowsEqualTheSameRowsOfTheWhole) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 20; ++round) {
    Spec spec = drawSpec(random);
    spec.branches = kAllBranches;
    const DrawnNsa drawn =
        drawNsa(random, spec, round % 2 ? packedLengths({20, 0, 9}, {27, 5, 40}, spec) : denseLengths(2, 15, 1 + 40));
    Nsa nsa = drawn.nsa();
    const NsaResult whole = forward(nsa);
    nsa.rows = {28, 3, 19, 21};
    const BlockListView lists = listView(whole.blockLists, drawn.lengths);
    for (const bool given : {false, true}) {
      if (given)
        nsa.blockLists = lists;
      const NsaResult few = forward(nsa);
      SCOPED_TRACE(specText(spec));
      for (size_t i = 0; i < nsa.rows.size(); ++i) {
        const size_t there = static_cast<size_t>(nsa.rows[i]), width = static_cast<size_t>(spec.queryHeads) * spec.vDim;
        for (size_t c = 0; c < width; ++c)
          ASSERT_EQ(few.out[i * width + c], whole.out[there * width + c]);
        for (int64_t head = 0; head < spec.kvHeads; ++head) {
          EXPECT_EQ(few.reads[i * spec.kvHeads + head], whole.reads[there * spec.kvHeads + head]);
          EXPECT_TRUE(std::ranges::equal(few.blockLists.at(static_cast<int64_t>(i), head),
                                         whole.blockLists.at(nsa.rows[i], head)));
        }
        for (size_t branch = 0; branch < kBranchCount; ++branch)
          for (int64_t head = 0; head < spec.queryHeads; ++head)
            EXPECT_EQ(few.branches[branch].lse[i * spec.queryHeads + head],
                      whole.branches[branch].lse[there * spec.queryHeads + head]);
      }
    }
  }
}

TEST(Nsa, WhenBothCoverAllSelAndWinAreDense) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 20; ++round) {
    Spec spec = drawSpec(random);
    spec.branches = kAllBranches;
    spec.window = 45;
    spec.selCount = Spec::kMostSelCount;
    DrawnNsa drawn = drawNsa(random, spec, drawLengths(random, spec, 45));
    Nsa nsa = drawn.nsa();
    nsa.kWin = nsa.kSel;
    nsa.vWin = nsa.vSel;
    const NsaResult result = forward(nsa);
    Attention dense{.spec = spec, .q = nsa.q, .k = nsa.kSel, .v = nsa.vSel, .sequences = nsa.sequences};
    dense.spec.op = Operator::kDense;
    const AttentionResult expected = attend(dense);
    SCOPED_TRACE(specText(spec));
    expectSame(result.branches[kSel], expected);
    expectSame(result.branches[kWin], expected);
  }
}

TEST(Nsa, NothingInTheFutureMovesARow) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 30; ++round) {
    Spec spec = drawSpec(random);
    spec.branches = kAllBranches;
    DrawnNsa drawn = drawNsa(random, spec, denseLengths(1, 40, 40));
    const NsaResult clean = forward(drawn.nsa());
    const int64_t position = static_cast<int64_t>(random() % 40);
    for (OwnedTensor *tensor : {&drawn.kCmp, &drawn.vCmp, &drawn.kSel, &drawn.vSel, &drawn.kWin, &drawn.vWin})
      for (int64_t time = position + 1; time < 40; ++time)
        for (int64_t head = 0; head < spec.kvHeads; ++head)
          fillRow(*tensor, 0, time, head, random() % 2 ? std::nan("") : std::numeric_limits<double>::infinity());
    const NsaResult poisoned = forward(drawn.nsa());
    SCOPED_TRACE(specText(spec) + " position " + std::to_string(position));
    const size_t rows = static_cast<size_t>(position) + 1;
    for (size_t i = 0; i < rows * spec.queryHeads * spec.vDim; ++i)
      ASSERT_EQ(poisoned.out[i], clean.out[i]) << "element " << i;
    for (size_t i = 0; i < rows * spec.kvHeads * spec.selCount; ++i)
      ASSERT_EQ(poisoned.blockLists.blocks[i], clean.blockLists.blocks[i]) << "slot " << i;
    for (size_t i = 0; i < rows * spec.kvHeads; ++i)
      ASSERT_EQ(poisoned.reads[i], clean.reads[i]);
  }
}

// The other side of it: a key that a query may attend moves its output.
TEST(Nsa, EveryAllowedTokenMovesTheRow) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.op = Operator::kNsa,
                  .dtype = DType::kF32,
                  .queryHeads = 2,
                  .kvHeads = 1,
                  .qkDim = 4,
                  .vDim = 3,
                  .window = 7,
                  .cmpBlock = 4,
                  .cmpStride = 2,
                  .selBlock = 4,
                  .selCount = 3,
                  .initBlocks = 1,
                  .localBlocks = 1};
  DrawnNsa drawn = drawNsa(random, spec, denseLengths(1, 1, 30)); // one query: not only key 0 may count
  drawn.qCmp = {};
  const NsaResult clean = forward(drawn.nsa());
  // In compressed blocks: the whole ones end at token 29. Selected: what the list says. Window: the last 7.
  for (int64_t token = 0; token < 30; ++token) {
    const std::span<const int32_t> list = clean.blockLists.at(0, 0);
    const bool selected = std::ranges::find(list, token / 4) != list.end();
    auto moved = [&](OwnedTensor &tensor, size_t branch) {
      const double old = tensor.view().at(0, token, 0, 0);
      setElement(tensor, 0, token, 0, 0, old + 1);
      Nsa nsa = drawn.nsa();
      nsa.blockLists = listView(clean.blockLists, drawn.lengths);
      const bool differs = forward(nsa).branches[branch].out != clean.branches[branch].out;
      setElement(tensor, 0, token, 0, 0, old);
      return differs;
    };
    for (OwnedTensor *tensor : {&drawn.kCmp, &drawn.vCmp})
      EXPECT_TRUE(moved(*tensor, kCmp)) << token;
    for (OwnedTensor *tensor : {&drawn.kSel, &drawn.vSel})
      EXPECT_EQ(moved(*tensor, kSel), selected) << token;
    for (OwnedTensor *tensor : {&drawn.kWin, &drawn.vWin})
      EXPECT_EQ(moved(*tensor, kWin), token > 22) << token;
  }
}

TEST(Nsa, ShortSequencesHaveNoCompressedBranch) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.op = Operator::kNsa, .dtype = DType::kBf16, .queryHeads = 4, .kvHeads = 2, .qkDim = 8, .vDim = 4};
  const DrawnNsa drawn = drawNsa(random, spec, packedLengths({31, 0, 1, 33}, {31, 0, 5, 33}, spec)); // l is 32
  const NsaResult result = forward(drawn.nsa());
  EXPECT_EQ(result.compressed.k.times, 1);
  for (int64_t row = 0; row < 65; ++row) {
    const bool visible = row >= 32 + 31;
    for (int64_t head = 0; head < 4; ++head) {
      EXPECT_EQ(result.branches[kCmp].lse[row * 4 + head] == -std::numeric_limits<double>::infinity(), !visible);
      for (int64_t c = 0; c < 4; ++c) {
        if (!visible) {
          EXPECT_EQ(result.branches[kCmp].out[(row * 4 + head) * 4 + c], 0);
        }
        EXPECT_TRUE(std::isfinite(result.out[(row * 4 + head) * 4 + c]));
      }
    }
    const int64_t position = row < 31 ? row : row < 32 ? 4 : row - 32;
    EXPECT_EQ(result.reads[row * 2], visible + 2 * (position + 1)); // all tokens twice: selected, and in the window
  }
}

TEST(Nsa, SelectionNeedsNoCompressedValues) {
  std::mt19937_64 random(test::freshSeed());
  Spec spec = drawSpec(random);
  spec.branches = kBranchSel | kBranchWin;
  const DrawnNsa drawn = drawNsa(random, spec, denseLengths(1, 30, 30));
  Nsa nsa = drawn.nsa();
  const NsaResult expected = forward(nsa);
  nsa.vCmp = {};
  expectSame(forward(nsa), expected);
}

} // namespace
} // namespace nsa::reference
