// What speeds are counted from: the pairs that the reference's masks allow, and products worked out by hand.
#include "tools/support/operator_work.h"

#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

Spec smallSpec(Operator op, Layout layout = Layout::kDense) {
  Spec spec;
  spec.op = op;
  spec.dtype = DType::kF32;
  spec.layout = layout;
  spec.queryHeads = 6;
  spec.kvHeads = 2;
  spec.qkDim = 8;
  spec.vDim = 4;
  spec.window = 20;
  spec.cmpBlock = 8;
  spec.cmpStride = 4;
  spec.selBlock = 16;
  spec.selCount = 4;
  return spec;
}

const SequenceLengths kDense = {{70, 70}, {110, 110}}, kPrompt = {{110}, {110}},
                      kPacked = {{90, 0, 5, 33}, {150, 0, 5, 129}};

// Keys that the reference's masks allow, over all heads; the lists come from the inputs, or for nsa from the selection.
int64_t allowedPairs(Operator op, const OperatorInputs &inputs, const reference::BlockLists &lists = {}) {
  reference::Attention attention;
  attention.spec = inputs.spec;
  attention.spec.op = op;
  attention.blockLists = lists;
  attention.sequences = sequencesOf(inputs);
  int64_t pairs = 0;
  for (const reference::Sequence &sequence : attention.sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int32_t head = 0; head < inputs.spec.kvHeads; ++head)
        for (const reference::KeyRange &range : reference::allowedKeys(attention, sequence, query, head))
          pairs += (range.end - range.begin) * inputs.spec.group();
  return pairs;
}

TEST(OperatorWork, AttentionCountsWhatTheReferenceAllows) {
  const uint64_t seed = test::freshSeed();
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel})
    for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
      const bool dense = layout == Layout::kDense;
      // Dense compressed attention takes as many tokens as queries.
      const OperatorInputs inputs = drawInputs(smallSpec(op, layout),
                                               !dense                 ? kPacked
                                               : op == Operator::kCmp ? kPrompt
                                                                      : kDense,
                                               seed);
      reference::BlockLists lists;
      if (op == Operator::kSel)
        lists = reference::readBlockLists(sequencesOf(inputs), listView(inputs.spec, inputs[TensorName::kBlockList]),
                                          inputs.spec.kvHeads, inputs.spec.selCount);
      const int64_t expected = allowedPairs(op, inputs, lists);
      EXPECT_GT(expected, 0);
      EXPECT_EQ(usefulFlops(inputs), 2.0 * static_cast<double>(expected) * (8 + 4))
          << operatorName(op) << " " << layoutName(layout);
    }
}

TEST(OperatorWork, SelectMakesTheScoresOfQueriesThatLeaveBlocksOut) {
  const OperatorInputs select = drawInputs(smallSpec(Operator::kSelect), kPrompt, 1);
  // From position 64 on there are more than 4 blocks of 16 tokens.
  int64_t scores = 0;
  for (int64_t position = 64; position < 110; ++position)
    scores += (position + 1 - 8) / 4 + 1;
  EXPECT_EQ(usefulFlops(select), 2.0 * static_cast<double>(scores) * 6 * 8);
  const OperatorInputs idle = drawInputs(smallSpec(Operator::kSelect), {{64}, {64}}, 1);
  EXPECT_EQ(usefulFlops(idle), 0);
  EXPECT_EQ(workByPart(idle).front().bytes, 4.0 * 64 * 2 * 4) << "the lists alone";
}

TEST(OperatorWork, PartsAreTheWholeAndTheirTensors) {
  const OperatorInputs inputs = drawInputs(smallSpec(Operator::kNsa), kPrompt, 1);
  std::vector<Operator> operators;
  double flops = 0;
  for (const PartWork &work : workByPart(inputs)) {
    operators.push_back(work.part);
    flops += work.flops;
  }
  EXPECT_EQ(operators, (std::vector<Operator>{Operator::kCompress, Operator::kCmp, Operator::kSelect, Operator::kSel,
                                              Operator::kWindow, Operator::kCombine}));
  EXPECT_EQ(flops, usefulFlops(inputs));
  const std::vector<PartWork> parts = workByPart(inputs);
  // Two heads of keys and values, and 26 blocks of both; 6 heads of three results, gates and the sum.
  EXPECT_EQ(parts.front().bytes, 4.0 * 2 * (8 + 4) * (110 + 26));
  EXPECT_EQ(parts.back().bytes, 4.0 * 6 * 110 * (3 * 4 + 3 + 4));
}

TEST(OperatorWork, CompressionCountsItsWeights) {
  Spec spec = smallSpec(Operator::kCompress, Layout::kPacked);
  const double blocks = 36 + 0 + 0 + 31; // of 150, 0, 5 and 129 tokens
  EXPECT_EQ(usefulFlops(drawInputs(spec, kPacked, 1)), 0) << "a mean has no product";
  spec.cmpKind = CmpKind::kLinear;
  EXPECT_EQ(usefulFlops(drawInputs(spec, kPacked, 1)), 2 * blocks * 2 * 8 * (8 * 8 + 4 * 4));
  spec.cmpKind = CmpKind::kMlp;
  spec.mlpHidden = 10;
  EXPECT_EQ(usefulFlops(drawInputs(spec, kPacked, 1)), 2 * blocks * 2 * (8 * 8 * 10 + 10 * 8 + 8 * 4 * 10 + 10 * 4));
}

TEST(OperatorWork, TheCombinationHasNoProducts) {
  const OperatorInputs inputs = drawInputs(smallSpec(Operator::kCombine), kPrompt, 1);
  EXPECT_EQ(usefulFlops(inputs), 0);
}

TEST(OperatorWork, TheWholeForwardIsTheSumOfItsOperators) {
  for (const int32_t branches : {kAllBranches, kBranchCmp, kBranchSel, kBranchWin, kBranchCmp | kBranchWin}) {
    Spec spec = smallSpec(Operator::kNsa);
    spec.cmpKind = CmpKind::kLinear;
    spec.branches = branches;
    const OperatorInputs inputs = drawInputs(spec, kPrompt, 3);
    // The lists that the reference chooses: every right one has as many tokens.
    const reference::NsaResult chosen = reference::forward(referenceNsa(inputs));
    double flops = 0;
    auto add = [&](Operator op, const reference::BlockLists &lists) {
      flops += 2.0 * static_cast<double>(allowedPairs(op, inputs, lists)) * (8 + 4);
    };
    if (spec.hasBranch(kBranchCmp))
      add(Operator::kCmp, {});
    if (spec.hasBranch(kBranchSel)) {
      flops += usefulFlops(drawInputs(smallSpec(Operator::kSelect), kPrompt, 3));
      add(Operator::kSel, chosen.blockLists);
    }
    if (spec.hasBranch(kBranchWin))
      add(Operator::kWindow, {});
    if (spec.hasBranch(kBranchCmp | kBranchSel))
      flops += 2.0 * 26 * 2 * 8 * (8 * 8 + 4 * 4); // 26 blocks in 110 tokens
    EXPECT_EQ(usefulFlops(inputs), flops) << branches;
  }
}

TEST(OperatorWork, QueriesSelectOnceTheyHaveMoreBlocksThanPlaces) {
  // Four blocks of 16 fill the list up to position 63.
  EXPECT_EQ(selectingQueries(drawInputs(smallSpec(Operator::kNsa), kPrompt, 1)), 110 - 64);
  const OperatorInputs packed = drawInputs(smallSpec(Operator::kNsa, Layout::kPacked), kPacked, 1);
  EXPECT_EQ(queryCount(packed), 128);
  EXPECT_EQ(selectingQueries(packed), 86 + 33); // positions 60 .. 149 and 96 .. 128
}

} // namespace
} // namespace nsa::tools
