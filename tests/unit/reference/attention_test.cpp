// The attention operators of the reference against the mask brute force, and against results known by hand.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::reference {
namespace {

struct Inputs {
  OwnedTensor q, k, v;
  Attention attention;
};

Inputs drawInputs(std::mt19937_64 &random, const Spec &spec, const DrawnLengths &lengths) {
  Inputs inputs;
  int64_t keyTimes = lengths.keyTimes;
  if (spec.op == Operator::kCmp) {
    keyTimes = 0;
    for (const Sequence &sequence : lengths.sequences)
      keyTimes = std::max(keyTimes, sequence.blockBegin + spec.compressedBlocks(sequence.keys));
  }
  inputs.q = drawTensor(random, spec.dtype, lengths.batches, lengths.queryTimes, spec.queryHeads, spec.qkDim);
  inputs.k = drawTensor(random, spec.dtype, lengths.batches, keyTimes, spec.kvHeads, spec.qkDim);
  inputs.v = drawTensor(random, spec.dtype, lengths.batches, keyTimes, spec.kvHeads, spec.vDim);
  inputs.attention.spec = spec;
  inputs.attention.q = inputs.q.view();
  inputs.attention.k = inputs.k.view();
  inputs.attention.v = inputs.v.view();
  inputs.attention.sequences = lengths.sequences;
  return inputs;
}

// Any ascending blocks of the sequence: none, all, those in the future too.
BlockLists drawLists(std::mt19937_64 &random, const Spec &spec, const std::vector<Sequence> &sequences) {
  BlockLists lists = BlockLists::make(rowEnd(sequences), spec.kvHeads, spec.selCount);
  for (const Sequence &sequence : sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead) {
        const uint64_t every = 1 + random() % 4;
        size_t slot = 0;
        for (int64_t block = 0; block * spec.selBlock < sequence.keys; ++block)
          if (random() % every == 0 && slot < static_cast<size_t>(spec.selCount))
            lists.at(sequence.firstRow + query, kvHead)[slot++] = static_cast<int32_t>(block);
      }
  return lists;
}

// Keys that begin anywhere around the queries. Those of a list begin at position 0.
void drawKeyOffsets(std::mt19937_64 &random, const Spec &spec, std::vector<Sequence> &sequences) {
  const int64_t step = spec.op == Operator::kCmp ? spec.cmpStride : 1;
  for (Sequence &sequence : sequences)
    if (spec.op != Operator::kSel && random() % 2)
      sequence.keyOffset =
          std::uniform_int_distribution<int64_t>(-2 * sequence.keys, 2 * sequence.keys)(random) / step * step;
}

TEST(Attention, EqualsTheMaskBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel}) {
    for (int round = 0; round < 60; ++round) {
      Spec spec = drawSpec(random);
      spec.op = op;
      Inputs inputs = drawInputs(random, spec, drawLengths(random, spec, 40));
      if (op == Operator::kSel)
        inputs.attention.blockLists = drawLists(random, spec, inputs.attention.sequences);
      drawKeyOffsets(random, spec, inputs.attention.sequences);
      SCOPED_TRACE(std::string(operatorName(op)) + " " + specText(spec));
      expectSame(attend(inputs.attention, 1 + static_cast<int>(random() % 3)), attendByMask(inputs.attention));
    }
  }
}

TEST(Attention, ASingleRowEqualsTheSameRowOfTheBatch) {
  std::mt19937_64 random(test::freshSeed());
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel}) {
    Spec spec = drawSpec(random);
    spec.op = op;
    Inputs inputs = drawInputs(random, spec, packedLengths({9, 0, 20}, {15, 7, 33}, spec));
    const BlockLists lists = drawLists(random, spec, inputs.attention.sequences);
    inputs.attention.blockLists = lists;
    drawKeyOffsets(random, spec, inputs.attention.sequences);
    const AttentionResult whole = attend(inputs.attention);
    SCOPED_TRACE(std::string(operatorName(op)) + " " + specText(spec));

    std::vector<int64_t> rows;
    for (int64_t row = 28; row >= 0; row -= 1 + static_cast<int64_t>(random() % 3))
      rows.push_back(row);
    inputs.attention.sequences = renumberRows(singleRows(inputs.attention.sequences, rows));
    inputs.attention.blockLists = BlockLists::make(static_cast<int64_t>(rows.size()), lists.kvHeads, lists.slots);
    for (size_t i = 0; i < rows.size(); ++i)
      for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead)
        std::ranges::copy(lists.at(rows[i], kvHead),
                          inputs.attention.blockLists.at(static_cast<int64_t>(i), kvHead).begin());
    const AttentionResult few = attend(inputs.attention);
    ASSERT_EQ(few.lse.size(), rows.size() * static_cast<size_t>(spec.queryHeads));
    for (size_t i = 0; i < rows.size(); ++i) {
      for (int64_t head = 0; head < spec.queryHeads; ++head) {
        const size_t here = i * spec.queryHeads + head, there = rows[i] * spec.queryHeads + head;
        EXPECT_EQ(few.lse[here], whole.lse[there]);
        for (int64_t c = 0; c < spec.vDim; ++c)
          EXPECT_EQ(few.out[here * spec.vDim + c], whole.out[there * spec.vDim + c]);
      }
      for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead)
        EXPECT_EQ(few.reads[i * spec.kvHeads + kvHead], whole.reads[rows[i] * spec.kvHeads + kvHead]);
    }
  }
}

// Two queries over two keys of ones, at the positions 2 and 3 of four tokens: the keys are the last two, the first two,
// the two before position 0, and two of the future.
TEST(Attention, AnOffsetMovesTheKeys) {
  std::mt19937_64 random(test::freshSeed());
  const Spec dense{
      .op = Operator::kDense, .dtype = DType::kF32, .queryHeads = 1, .kvHeads = 1, .qkDim = 2, .vDim = 1, .window = 2};
  for (const Operator op : {Operator::kDense, Operator::kWindow}) {
    Spec spec = dense;
    spec.op = op;
    Inputs inputs = drawInputs(random, spec, denseLengths(1, 2, 2));
    const auto readsAt = [&](int64_t offset) {
      inputs.attention.sequences[0].keyOffset = offset;
      return attend(inputs.attention).reads;
    };
    const bool windowed = op == Operator::kWindow;
    EXPECT_EQ(readsAt(0), (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(readsAt(-1), (std::vector<int64_t>{2, windowed ? 1 : 2}));
    EXPECT_EQ(readsAt(-2), (std::vector<int64_t>{windowed ? 1 : 2, windowed ? 0 : 2}));
    EXPECT_EQ(readsAt(1), (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(readsAt(2), (std::vector<int64_t>{0, 0}));
  }
}

TEST(Attention, WindowOneCopiesTheOwnValue) {
  std::mt19937_64 random(test::freshSeed());
  const Inputs inputs = drawInputs(random,
                                   {.op = Operator::kWindow,
                                    .dtype = DType::kF32,
                                    .queryHeads = 2,
                                    .kvHeads = 1,
                                    .qkDim = 4,
                                    .vDim = 2,
                                    .window = 1},
                                   denseLengths(1, 3, 5));
  const AttentionResult result = attend(inputs.attention);
  for (int64_t query = 0; query < 3; ++query) {
    for (int64_t head = 0; head < 2; ++head) {
      // Query i of 3 sits at position 5 - 3 + i.
      double score = 0;
      for (int64_t c = 0; c < 4; ++c)
        score += inputs.attention.q.at(0, query, head, c) * inputs.attention.k.at(0, 2 + query, 0, c);
      EXPECT_NEAR(result.lse[query * 2 + head], score / 2, 1e-12); // 1/sqrt(qk_dim), whatever v_dim is
      for (int64_t c = 0; c < 2; ++c)
        EXPECT_NEAR(result.out[(query * 2 + head) * 2 + c], inputs.attention.v.at(0, 2 + query, 0, c), 1e-12);
    }
    EXPECT_EQ(result.reads[query], 1);
  }
}

TEST(Attention, EqualScoresGiveTheMeanAndTheNaturalLogOfTheCount) {
  std::mt19937_64 random(test::freshSeed());
  Inputs inputs = drawInputs(
      random, {.op = Operator::kDense, .dtype = DType::kF32, .queryHeads = 1, .kvHeads = 1, .qkDim = 3, .vDim = 1},
      denseLengths(1, 4, 4));
  std::fill(inputs.q.bytes.begin(), inputs.q.bytes.end(), std::byte{0});
  const AttentionResult result = attend(inputs.attention);
  double sum = 0;
  for (int64_t position = 0; position < 4; ++position) {
    sum += inputs.attention.v.at(0, position, 0, 0);
    EXPECT_NEAR(result.out[position], sum / (position + 1), 1e-12);
    EXPECT_NEAR(result.lse[position], std::log(position + 1.0), 1e-12);
    EXPECT_EQ(result.reads[position], position + 1);
  }
}

TEST(Attention, ACompressedBlockIsVisibleOnceItsLastTokenIs) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.op = Operator::kCmp,
                  .dtype = DType::kBf16,
                  .queryHeads = 2,
                  .kvHeads = 1,
                  .qkDim = 4,
                  .vDim = 3,
                  .cmpBlock = 8,
                  .cmpStride = 4};
  const Inputs inputs = drawInputs(random, spec, denseLengths(1, 21, 21));
  const AttentionResult result = attend(inputs.attention);
  for (int64_t position = 0; position < 21; ++position) {
    // Blocks end at 7, 11, 15, 19.
    const int64_t visible = position < 7 ? 0 : (position - 7) / 4 + 1;
    EXPECT_EQ(result.reads[position], visible);
    for (int64_t head = 0; head < 2; ++head) {
      EXPECT_EQ(std::isinf(result.lse[position * 2 + head]), visible == 0);
      if (visible == 0) {
        EXPECT_LT(result.lse[position * 2 + head], 0);
      }
      for (int64_t c = 0; c < 3; ++c) {
        const double out = result.out[(position * 2 + head) * 3 + c];
        if (visible == 0) {
          EXPECT_EQ(out, 0);
        }
        if (visible == 1) {
          EXPECT_NEAR(out, inputs.attention.v.at(0, 0, 0, c), 1e-12);
        }
      }
    }
  }
}

TEST(Attention, AListAttendsItsBlocksUpToTheQuery) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.op = Operator::kSel,
                  .dtype = DType::kF32,
                  .queryHeads = 3,
                  .kvHeads = 1,
                  .qkDim = 4,
                  .vDim = 2,
                  .selBlock = 4,
                  .selCount = 3};
  Inputs inputs = drawInputs(random, spec, denseLengths(1, 5, 14)); // positions 9 .. 13, own blocks 2 and 3
  inputs.attention.blockLists = {.kvHeads = 1,
                                 .slots = 3,
                                 .blocks = {-1, -1, -1, /**/ 3, -1, -1,
                                            /**/ 0, 2, 3, /**/ 0, 1, -1, /**/ 3, -1, -1}};
  const AttentionResult result = attend(inputs.attention);
  // An empty list; a block beyond the own one; an own, incomplete one; whole ones; the own one up to the query.
  EXPECT_EQ(result.reads, (std::vector<int64_t>{0, 0, 4 + 4, 8, 2}));
  for (const int64_t row : {0, 1})
    for (int64_t head = 0; head < 3; ++head) {
      EXPECT_EQ(result.lse[row * 3 + head], -std::numeric_limits<double>::infinity());
      EXPECT_EQ(result.out[(row * 3 + head) * 2], 0);
      EXPECT_EQ(result.out[(row * 3 + head) * 2 + 1], 0);
    }
  EXPECT_EQ(allowedKeys(inputs.attention, inputs.attention.sequences[0], 4, 0).front().begin, 12);
  EXPECT_EQ(allowedKeys(inputs.attention, inputs.attention.sequences[0], 4, 0).front().end, 14);
}

TEST(Attention, MalformedListsAreReadAsSets) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{.op = Operator::kSel,
                  .dtype = DType::kF32,
                  .queryHeads = 1,
                  .kvHeads = 1,
                  .qkDim = 4,
                  .vDim = 2,
                  .selBlock = 4,
                  .selCount = 4};
  Inputs inputs = drawInputs(random, spec, denseLengths(1, 1, 14));
  inputs.attention.blockLists = {.kvHeads = 1, .slots = 4, .blocks = {0, 2, -1, -1}};
  const AttentionResult expected = attend(inputs.attention);
  for (const std::vector<int32_t> &blocks :
       {std::vector<int32_t>{2, 0, -1, -1}, {0, 2, 2, 0}, {-1, 0, -7, 2}, {0, 2, 4, 1 << 30}}) {
    inputs.attention.blockLists.blocks = blocks;
    expectSame(attend(inputs.attention), expected);
  }
}

// What the query may not attend is not even read, so it may be anything.
TEST(Attention, NothingInTheFutureMovesARow) {
  std::mt19937_64 random(test::freshSeed());
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel}) {
    Spec spec = drawSpec(random);
    spec.op = op;
    Inputs inputs = drawInputs(random, spec, denseLengths(2, 30, 30));
    inputs.attention.blockLists = drawLists(random, spec, inputs.attention.sequences);
    const AttentionResult clean = attend(inputs.attention);
    const int64_t position = 5 + static_cast<int64_t>(random() % 20);
    const int64_t first = op == Operator::kCmp ? spec.compressedBlocks(position + 1) : position + 1;
    for (int64_t batch = 0; batch < 2; ++batch)
      for (int64_t key = first; key < inputs.k.times; ++key)
        for (int64_t head = 0; head < spec.kvHeads; ++head) {
          fillRow(inputs.k, batch, key, head, std::nan(""));
          fillRow(inputs.v, batch, key, head, std::numeric_limits<double>::infinity());
        }
    const AttentionResult poisoned = attend(inputs.attention);
    for (int64_t batch = 0; batch < 2; ++batch)
      for (int64_t i = 0; i < (position + 1) * spec.queryHeads; ++i) {
        const int64_t row = batch * 30 * spec.queryHeads + i;
        EXPECT_EQ(poisoned.lse[row], clean.lse[row]) << operatorName(op) << " row " << row;
        for (int64_t c = 0; c < spec.vDim; ++c)
          EXPECT_EQ(poisoned.out[row * spec.vDim + c], clean.out[row * spec.vDim + c]);
      }
  }
}

} // namespace
} // namespace nsa::reference
