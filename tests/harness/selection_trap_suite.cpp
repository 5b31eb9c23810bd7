// Traps of the selection (docs/specification.md 13): scores normalised over future blocks, ties broken by subtracting
// the index, NaN ranked first, lists that leave the own block out. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/elements.h"
#include "tools/reference/selection.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace nsa::test {
namespace {

using T = TensorName;

class SelectionTraps : public OperatorTestPerType {
protected:
  // One query behind `tokens`, whose compressed keys all have the score 1 before they are scaled: exact ties.
  static OperatorInputs evenScores(int64_t tokens, float scale) {
    Spec spec = smallSpec(Operator::kSelect, dtype());
    spec.layout = Layout::kPacked; // a prefix
    spec.scale = scale;
    OperatorInputs inputs = tools::drawInputs(spec, {{1}, {tokens}}, 1);
    fill(spec.dtype, inputs.tensors.at(T::kQCmp).bytes, 0);
    fill(spec.dtype, inputs.tensors.at(T::kKComp).bytes, 0);
    for (int64_t head = 0; head < spec.queryHeads; ++head)
      setFirst(inputs, T::kQCmp, 0, head, 1);
    for (int64_t block = 0; block < inputs.extents.blocks; ++block)
      setScore(inputs, block, 1);
    return inputs;
  }

  static void setFirst(OperatorInputs &inputs, T name, int64_t time, int64_t head, double value) {
    tools::HostTensor &tensor = inputs.tensors.at(name);
    fill(tensor.dtype, headOf(inputs.spec, tensor, 0, time, head).first(static_cast<size_t>(dtypeBytes(tensor.dtype))),
         value);
  }
  static void setScore(OperatorInputs &inputs, int64_t block, double score) {
    for (int64_t head = 0; head < inputs.spec.kvHeads; ++head)
      setFirst(inputs, T::kKComp, block, head, score);
  }

  // The list of the only query, the same for all kv heads.
  std::vector<int32_t> listOf(const OperatorInputs &inputs) {
    const NamedTensors outputs = run(inputs);
    const tools::HostTensor &lists = outputs.at(T::kBlockList);
    std::vector<int32_t> list;
    for (int64_t i = 0; i < lists.elements(); ++i) {
      const auto block = static_cast<int32_t>(elementOf(lists, i));
      if (i < inputs.spec.selCount)
        list.push_back(block);
      EXPECT_EQ(block, list[static_cast<size_t>(i % inputs.spec.selCount)]) << "kv heads differ";
    }
    return list;
  }
};
NSA_INSTANTIATE_PER_TYPE(SelectionTraps);

// Blocks of the future, however much they would weigh, change neither weights nor normaliser nor lists.
TEST_P(SelectionTraps, FutureBlocksAreNotInTheNormaliser) {
  std::mt19937_64 random(freshSeed());
  const Spec spec = smallSpec(Operator::kNsa, dtype());
  const OperatorInputs inputs = tools::drawInputs(spec, {{150}, {190}}, random());
  const tools::PlanHandle made = plan(spec, inputs.maxima);
  const NamedTensors before = run(made, inputs);
  checkOutputs(inputs, before);
  const reference::Sequence sequence = tools::sequencesOf(inputs).front();
  for (int repeat = 0; repeat < 8; ++repeat) {
    const auto query = static_cast<int64_t>(random() % 150);
    OperatorInputs changed = inputs;
    for (int64_t key = sequence.position(query) + 1; key < sequence.keys; ++key)
      for (int64_t head = 0; head < spec.kvHeads; ++head) {
        // 20 times the query itself: a score that leaves nothing to any other.
        const std::span<const std::byte> q = headOf(spec, inputs[T::kQ], 0, query, head * spec.group());
        const std::span<std::byte> k = headOf(spec, changed.tensors.at(T::kKCmp), 0, key, head);
        for (int64_t column = 0; column < spec.qkDim; ++column)
          reference::storeElement(spec.dtype, k.data(), column,
                                  20.0 * reference::loadElement(spec.dtype, q.data(), column));
      }
    const NamedTensors after = run(made, changed);
    expectSameQuery(spec, before, after, sequence, query);
    ASSERT_FALSE(HasFailure());
    // The keys do have that weight where they are seen: the last query's group follows them.
    ASSERT_FALSE(
        sameBytes(headOf(spec, after.at(T::kLseCmp), 0, 149, 0), headOf(spec, before.at(T::kLseCmp), 0, 149, 0)) &&
        spec.compressedBlocks(190) > spec.compressedBlocks(sequence.position(query) + 1));
  }
}

TEST_P(SelectionTraps, TheOwnAndTheForcedBlocksAreInEveryList) {
  std::mt19937_64 random(freshSeed());
  Spec spec = smallSpec(Operator::kNsa, dtype());
  for (const auto &[init, local] : {std::pair{1, 2}, std::pair{0, 1}, std::pair{2, 3}}) {
    spec.initBlocks = init;
    spec.localBlocks = local;
    const OperatorInputs inputs = tools::drawInputs(spec, {{170}, {171}}, random());
    const NamedTensors outputs = run(inputs);
    checkOutputs(inputs, outputs);
    for (int64_t query = 0; query < 170; ++query)
      for (int64_t head = 0; head < spec.kvHeads; ++head) {
        const int64_t own = (query + 1) / spec.selBlock;
        std::vector<int32_t> list(static_cast<size_t>(spec.selCount));
        const std::span<const std::byte> bytes = headOf(spec, outputs.at(T::kBlockList), 0, query, head);
        std::memcpy(list.data(), bytes.data(), bytes.size());
        for (int64_t block = 0; block <= own; ++block)
          if (block < init || block > own - local)
            ASSERT_TRUE(std::ranges::count(list, block) == 1) << "block " << block << " of query " << query;
        ASSERT_EQ(std::ranges::count_if(list, [](int32_t block) { return block >= 0; }),
                  std::min<int64_t>(spec.selCount, own + 1));
      }
  }
}

// A compressed block that lies across the border of two blocks gives each its share, also where a kernel's tile of
// blocks ends at that border.
TEST_P(SelectionTraps, ACompressedBlockAcrossABorderCountsForBothSides) {
  constexpr int64_t kTokens = 4000;
  OperatorInputs inputs = evenScores(kTokens, 400); // so all other scores are 0
  inputs.spec.initBlocks = 0;
  inputs.spec.localBlocks = 1;
  const Spec &spec = inputs.spec;
  ASSERT_EQ(spec.selCount, 5);
  const auto own = static_cast<int32_t>((kTokens - 1) / spec.selBlock);
  for (int32_t border = 8; border < own; border += 8) {
    const int64_t across = (border * spec.selBlock - 1) / spec.cmpStride;
    ASSERT_GT(across * spec.cmpStride + spec.cmpBlock, border * spec.selBlock);
    for (int64_t block = 0; block < inputs.extents.blocks; ++block)
      setScore(inputs, block, block == across ? 1 : 0);
    ASSERT_EQ(listOf(inputs), (std::vector<int32_t>{0, 1, border - 1, border, own})) << "the others tie";
  }
}

// Subtracting 1e-8 times the index is nothing in fp32 beside scores of one; the order is one of pairs.
TEST_P(SelectionTraps, EqualScoresTakeTheLowerBlocks) {
  for (const int64_t tokens : {200, 1000, 4000}) {
    const OperatorInputs inputs = evenScores(tokens, 1);
    const auto own = static_cast<int32_t>((tokens - 1) / inputs.spec.selBlock);
    EXPECT_EQ(listOf(inputs), (std::vector<int32_t>{0, 1, 2, own - 1, own})) << tokens << " tokens";
  }
}

// And where it is something, it outweighs differences that are real.
TEST_P(SelectionTraps, ATinyDifferenceBeatsAnyIndex) {
  // A difference of 2e-6 between scores of 0.016, at the end of 500 blocks: 1e-8 times the index is 5e-6.
  constexpr int64_t kTokens = 8000;
  constexpr double kNext = 1 + 0x1p-7; // after 1, in bf16
  OperatorInputs inputs = evenScores(kTokens, 0.015f);
  const int32_t best = 490;
  const int64_t blocksEach = inputs.spec.selBlock / inputs.spec.cmpStride;
  for (int64_t block = best * blocksEach - 1; block < (best + 1) * blocksEach; ++block)
    setScore(inputs, block, kNext);
  const std::vector<int32_t> list = listOf(inputs);
  EXPECT_NE(std::ranges::find(list, best), list.end()) << ::testing::PrintToString(list);
}

// A NaN of either sign ranks below every number, and among themselves lower blocks come first.
TEST_P(SelectionTraps, NanScoresRankLast) {
  constexpr int64_t kTokens = 400;
  for (const double sign : {1.0, -1.0}) {
    OperatorInputs inputs = evenScores(kTokens, 1);
    const Spec &spec = inputs.spec;
    const auto own = static_cast<int32_t>((kTokens - 1) / spec.selBlock);
    // A log-sum-exp that no NaN has reached: only the blocks that overlap compressed block 3 have one, 1 and 2.
    tools::HostTensor lse = tools::HostTensor::make(DType::kF32, {1, spec.queryHeads});
    fill(DType::kF32, lse.bytes, 1 + std::log(static_cast<double>(inputs.extents.blocks)));
    setScore(inputs, 3, std::copysign(std::nan(""), sign));
    inputs.tensors[T::kLse] = lse;
    EXPECT_EQ(listOf(inputs), (std::vector<int32_t>{0, 3, 4, own - 1, own}));
    // Without one the softmax has no normaliser: all are NaN.
    inputs.tensors.erase(T::kLse);
    EXPECT_EQ(listOf(inputs), (std::vector<int32_t>{0, 1, 2, own - 1, own}));
  }
}

// A log-sum-exp far below the scores makes all of them infinite. Infinity is a number, and forced blocks stand above
// it.
TEST_P(SelectionTraps, InfiniteScoresDisplaceNoForcedBlock) {
  constexpr int64_t kTokens = 400;
  OperatorInputs inputs = evenScores(kTokens, 1);
  const auto own = static_cast<int32_t>((kTokens - 1) / inputs.spec.selBlock);
  tools::HostTensor lse = tools::HostTensor::make(DType::kF32, {1, inputs.spec.queryHeads});
  fill(DType::kF32, lse.bytes, -1000);
  inputs.tensors[T::kLse] = lse;
  EXPECT_EQ(listOf(inputs), (std::vector<int32_t>{0, 1, 2, own - 1, own}));
}

// A NaN among raw keys spoils the queries that see it, and neither their lists' form nor any query before it.
TEST_P(SelectionTraps, ANanKeyLeavesListsComplete) {
  std::mt19937_64 random(freshSeed());
  const Spec spec = smallSpec(Operator::kNsa, dtype());
  OperatorInputs inputs = tools::drawInputs(spec, {{200}, {200}}, random());
  const NamedTensors clean = run(inputs);
  constexpr int64_t kSpoilt = 90; // of blocks 10 (tokens 80 .. 95) and 11, visible from positions 95 and 103 on
  fill(spec.dtype, timeOf(spec, inputs.tensors.at(T::kKCmp), 0, kSpoilt), std::nan(""));
  const NamedTensors spoilt = run(inputs);
  const reference::Sequence sequence = tools::sequencesOf(inputs).front();
  for (int64_t query = 0; query < 95; ++query)
    expectSameQuery(spec, clean, spoilt, sequence, query);
  for (int64_t query = 95; query < 200; ++query)
    for (int64_t head = 0; head < spec.kvHeads; ++head) {
      const auto own = static_cast<int32_t>(query / spec.selBlock);
      std::vector<int32_t> list(static_cast<size_t>(spec.selCount));
      const std::span<const std::byte> bytes = headOf(spec, spoilt.at(T::kBlockList), 0, query, head);
      std::memcpy(list.data(), bytes.data(), bytes.size());
      ASSERT_EQ(list, (std::vector<int32_t>{0, 1, 2, own - 1, own})) << "query " << query;
    }
}

} // namespace
} // namespace nsa::test
