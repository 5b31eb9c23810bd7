// Decode against the forward pass over the whole history: steps, chunks and pages must make no difference.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"
#include "tools/reference/decode.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nsa::reference {
namespace {

// Part of a history: tokens [begin[s], begin[s] + count[s]) of each sequence of a dense batch.
NewTokens tokensOf(const DrawnNsa &drawn, const std::vector<int64_t> &begins, const std::vector<int64_t> &counts) {
  const Nsa nsa = drawn.nsa();
  NewTokens tokens{.q = nsa.q,
                   .qCmp = nsa.qCmp,
                   .kCmp = nsa.kCmp,
                   .vCmp = nsa.vCmp,
                   .kSel = nsa.kSel,
                   .vSel = nsa.vSel,
                   .kWin = nsa.kWin,
                   .vWin = nsa.vWin,
                   .gates = nsa.gates,
                   .sequences = {}};
  for (size_t s = 0; s < begins.size(); ++s)
    tokens.sequences.push_back({.batch = static_cast<int64_t>(s),
                                .queryBegin = begins[s],
                                .queries = counts[s],
                                .keyBatch = static_cast<int64_t>(s),
                                .keyBegin = begins[s],
                                .keys = counts[s]});
  tokens.sequences = renumberRows(tokens.sequences);
  return tokens;
}

CacheLayout contiguous(int64_t batch, int64_t capacity) { return {.batch = batch, .capacity = capacity}; }

// Pages in any order, some of which belong to no sequence. Entries behind the end are invalid.
CacheLayout paged(std::mt19937_64 &random, const Spec &spec, int64_t batch, int64_t capacity) {
  CacheLayout layout{.batch = batch, .pageTokens = spec.selBlock * (1 + static_cast<int64_t>(random() % 3))};
  const int64_t used = (capacity + layout.pageTokens - 1) / layout.pageTokens;
  layout.pagesPerSequence = used + 2;
  layout.pages = batch * used + 3;
  std::vector<int32_t> pages(static_cast<size_t>(layout.pages));
  std::iota(pages.begin(), pages.end(), 0);
  std::ranges::shuffle(pages, random);
  layout.blockTable.assign(static_cast<size_t>(batch * layout.pagesPerSequence), -1);
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t page = 0; page < used; ++page)
      layout.blockTable[s * layout.pagesPerSequence + page] = pages[s * used + page];
  return layout;
}

// Steps of any sizes until the whole history is in the cache; each step gives the same rows as `whole`.
void expectStepsEqual(std::mt19937_64 &random, const DrawnNsa &drawn, int64_t tokens, DecodeCache &cache,
                      const NsaResult &whole) {
  const Spec &spec = drawn.spec;
  const size_t batch = static_cast<size_t>(drawn.lengths.batches);
  std::vector<int64_t> lengths(batch, 0);
  while (*std::ranges::min_element(lengths) < tokens) {
    std::vector<int64_t> counts;
    for (const int64_t length : lengths) // one token, or a chunk, or none
      counts.push_back(std::min(tokens - length, static_cast<int64_t>(random() % 3 ? random() % 3 : random() % 20)));
    const NewTokens step = tokensOf(drawn, lengths, counts);
    cache.append(step);
    const NsaResult result = cache.attend(step);
    for (size_t s = 0; s < batch; ++s)
      for (int64_t i = 0; i < counts[s]; ++i) {
        const int64_t here = step.sequences[s].firstRow + i, there = static_cast<int64_t>(s) * tokens + lengths[s] + i;
        for (int64_t c = 0; c < int64_t{spec.queryHeads} * spec.vDim; ++c)
          ASSERT_EQ(result.out[here * spec.queryHeads * spec.vDim + c],
                    whole.out[there * spec.queryHeads * spec.vDim + c])
              << "sequence " << s << " token " << lengths[s] + i;
        for (int64_t head = 0; head < spec.kvHeads; ++head) {
          ASSERT_EQ(result.reads[here * spec.kvHeads + head], whole.reads[there * spec.kvHeads + head]);
          if (spec.hasBranch(kBranchSel)) {
            ASSERT_TRUE(std::ranges::equal(result.blockLists.at(here, head), whole.blockLists.at(there, head)));
          }
        }
      }
    for (size_t s = 0; s < batch; ++s) {
      lengths[s] += counts[s];
      ASSERT_EQ(cache.length(static_cast<int64_t>(s)), lengths[s]);
    }
  }
}

TEST(Decode, StepsEqualTheForwardPass) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 60; ++round) {
    const Spec spec = drawSpec(random);
    constexpr int64_t kTokens = 50;
    const int64_t batch = 1 + round % 3;
    const DrawnNsa drawn = drawNsa(random, spec, denseLengths(batch, kTokens, kTokens));
    SCOPED_TRACE(specText(spec));
    const Nsa nsa = drawn.nsa();
    const NsaResult whole = forward(nsa);
    DecodeCache cache(spec, nsa.phiK, nsa.phiV,
                      round % 2 ? contiguous(batch, kTokens) : paged(random, spec, batch, kTokens));
    expectStepsEqual(random, drawn, kTokens, cache, whole);
  }
}

TEST(Decode, TheLastStepEqualsTheBruteForceOverTheHistory) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 30; ++round) {
    const Spec spec = drawSpec(random);
    const int64_t tokens = 1 + static_cast<int64_t>(random() % 45);
    const int64_t queries = 1 + static_cast<int64_t>(random() % tokens);
    DrawnNsa drawn = drawNsa(random, spec, denseLengths(2, tokens, tokens));
    SCOPED_TRACE(specText(spec));
    const Nsa nsa = drawn.nsa();
    DecodeCache cache(spec, nsa.phiK, nsa.phiV, paged(random, spec, 2, tokens));
    cache.append(tokensOf(drawn, {0, 0}, {tokens - queries, tokens - queries}));
    const NewTokens last = tokensOf(drawn, {tokens - queries, tokens - queries}, {queries, queries});
    cache.append(last);

    Nsa history = drawn.nsa();
    history.sequences = last.sequences;
    for (Sequence &sequence : history.sequences) {
      sequence.keyBegin = 0;
      sequence.keys = tokens;
    }
    const Compressed compressed = compress({.spec = spec,
                                            .k = nsa.kCmp,
                                            .v = nsa.vCmp,
                                            .phiK = nsa.phiK,
                                            .phiV = nsa.phiV,
                                            .sequences = history.sequences});
    history.kComp = compressed.k.view();
    history.vComp = compressed.v.view();
    const NsaResult actual = cache.attend(last);
    BlockLists lists; // of the last tokens, where those of the whole history would lie
    if (spec.hasBranch(kBranchSel)) {
      Selection selection = drawn.selection(compressed);
      selection.sequences = history.sequences;
      expectSameLists(selection, actual.blockLists, selectByMask(selection));
      lists = BlockLists::make(2 * tokens, spec.kvHeads, spec.selCount);
      for (int64_t row = 0; row < 2 * queries; ++row)
        for (int64_t head = 0; head < spec.kvHeads; ++head)
          std::ranges::copy(actual.blockLists.at(row, head),
                            lists.at((row / queries + 1) * tokens - queries + row % queries, head).begin());
      history.blockLists = listView(lists, drawn.lengths);
    }
    expectSame(actual, forwardByMask(history));
  }
}

TEST(Decode, PoolsHoldWhatTheContractSays) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 20; ++round) {
    const Spec spec = drawSpec(random);
    constexpr int64_t kTokens = 37;
    const DrawnNsa drawn = drawNsa(random, spec, denseLengths(2, kTokens, kTokens));
    const Nsa nsa = drawn.nsa();
    const CacheLayout layout = paged(random, spec, 2, kTokens);
    DecodeCache cache(spec, nsa.phiK, nsa.phiV, layout);
    cache.append(tokensOf(drawn, {0, 0}, {kTokens, kTokens - 1}));
    const Compressed compressed = compress(
        {.spec = spec, .k = nsa.kCmp, .v = nsa.vCmp, .phiK = nsa.phiK, .phiV = nsa.phiV, .sequences = nsa.sequences});
    SCOPED_TRACE(specText(spec));
    for (int64_t s = 0; s < 2; ++s) {
      const int64_t length = cache.length(s);
      for (int64_t token = 0; token < length; ++token)
        ASSERT_EQ(cache.sel().k.at(s, token, 0, 0), nsa.kSel.at(s, token, 0, 0));
      for (int64_t token = length - std::min<int64_t>(length, spec.cmpBlock); token < length; ++token)
        ASSERT_EQ(cache.raw().v.at(s, token % spec.cmpBlock, 0, 0), nsa.vCmp.at(s, token, 0, 0));
      // Block c lies in page floor(c*d/page) of its own pool under the same table, slot (c*d mod page)/d.
      TensorView pool = cache.compressed().k;
      pool.pages = {};
      pool.pageRows = 0;
      for (int64_t c = 0; c < spec.compressedBlocks(length); ++c) {
        const int64_t begin = c * spec.cmpStride;
        const int64_t page = layout.blockTable[s * layout.pagesPerSequence + begin / layout.pageTokens];
        ASSERT_EQ(pool.at(page, begin % layout.pageTokens / spec.cmpStride, spec.kvHeads - 1, 0),
                  compressed.k.view().at(s, c, spec.kvHeads - 1, 0));
      }
      // What was not written is still NaN: a block exists only when its last token does.
      if (spec.compressedBlocks(length) * spec.cmpStride < (layout.pagesPerSequence - 2) * layout.pageTokens) {
        EXPECT_TRUE(std::isnan(cache.compressed().k.at(s, spec.compressedBlocks(length), 0, 0)));
      }
    }
  }
}

TEST(Decode, ABlockIsEmittedWithItsLastToken) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.op = Operator::kNsa,
                  .dtype = DType::kBf16,
                  .queryHeads = 2,
                  .kvHeads = 1,
                  .qkDim = 4,
                  .vDim = 4,
                  .cmpBlock = 8,
                  .cmpStride = 4,
                  .selBlock = 8};
  const DrawnNsa drawn = drawNsa(random, spec, denseLengths(1, 30, 30));
  // After a prompt of any length, emission goes on where it stood: it does not start anew.
  for (int64_t prompt = 0; prompt <= 20; ++prompt) {
    DecodeCache cache(spec, {}, {}, contiguous(1, 64));
    if (prompt > 0)
      cache.append(tokensOf(drawn, {0}, {prompt}));
    for (int64_t length = prompt + 1; length <= 30; ++length) {
      cache.append(tokensOf(drawn, {length - 1}, {1}));
      const int64_t emitted = length < 8 ? 0 : (length - 8) / 4 + 1;
      for (int64_t c = 0; c < 8; ++c)
        ASSERT_EQ(std::isnan(cache.compressed().k.at(0, c, 0, 0)), c >= emitted)
            << "prompt " << prompt << " length " << length << " block " << c;
    }
  }
}

TEST(Decode, GivenListsReplaceTheSelection) {
  std::mt19937_64 random(test::freshSeed());
  Spec spec = drawSpec(random);
  spec.branches = kAllBranches;
  const DrawnNsa drawn = drawNsa(random, spec, denseLengths(1, 20, 20));
  const Nsa nsa = drawn.nsa();
  DecodeCache cache(spec, nsa.phiK, nsa.phiV, contiguous(1, 20));
  cache.append(tokensOf(drawn, {0}, {19}));
  const NewTokens last = tokensOf(drawn, {19}, {1});
  cache.append(last);
  const std::vector<int32_t> empty(static_cast<size_t>(20 * spec.kvHeads * spec.selCount), -1);
  const NsaResult result = cache.attend(last, {.data = empty.data(),
                                               .batchStride = 0,
                                               .timeStride = int64_t{spec.kvHeads} * spec.selCount,
                                               .headStride = spec.selCount,
                                               .slotStride = 1});
  EXPECT_EQ(result.reads[0], spec.compressedBlocks(20) + std::min(spec.window, 20));
}

// The bench of the system that this one succeeds: a prompt, then 64 steps of one token, with the default geometry.
TEST(Decode, ReadsAreTheGoldenOnes) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.op = Operator::kNsa, .dtype = DType::kF32, .queryHeads = 8, .kvHeads = 2, .qkDim = 4, .vDim = 4};
  constexpr int64_t kSteps = 64;
  struct Golden {
    int64_t prompt, actual, expected;
  };
  for (const Golden golden : {Golden{512, 1123, 1571}, {1024, 1603, 1603}, {2048, 1667, 1667}, {4096, 1795, 1795}}) {
    const int64_t tokens = golden.prompt + kSteps;
    const DrawnNsa drawn = drawNsa(random, spec, denseLengths(1, tokens, tokens));
    DecodeCache cache(spec, {}, {}, contiguous(1, tokens));
    cache.append(tokensOf(drawn, {0}, {golden.prompt}));
    NewTokens step;
    for (int64_t i = 0; i < kSteps; ++i) {
      step = tokensOf(drawn, {golden.prompt + i}, {1});
      cache.append(step);
    }
    const NsaResult last = cache.attend(step);
    EXPECT_EQ(last.reads, (std::vector<int64_t>{golden.actual, golden.actual})) << "S = " << tokens;
    EXPECT_EQ(expectedReads(spec, tokens), golden.expected) << "S = " << tokens;
    // A prefill's last row reads the same.
    Nsa whole = drawn.nsa();
    whole.rows = {tokens - 1};
    EXPECT_EQ(forward(whole).reads, last.reads);
  }
}

} // namespace
} // namespace nsa::reference
