// The gated sum against the brute force and by hand.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"

#include <array>
#include <cmath>

namespace nsa::reference {
namespace {

struct Branches {
  std::array<OwnedTensor, kBranchCount> tensors;
  std::array<std::vector<double>, kBranchCount> values;
};

Branches drawBranches(std::mt19937_64 &random, const Spec &spec, const DrawnLengths &lengths) {
  Branches branches;
  for (size_t i = 0; i < kBranchCount; ++i) {
    branches.tensors[i] =
        drawTensor(random, spec.dtype, lengths.batches, lengths.queryTimes, spec.queryHeads, spec.vDim);
    branches.values[i] = readRows(lengths.sequences, branches.tensors[i].view(), spec.queryHeads, spec.vDim);
  }
  return branches;
}

TEST(Combination, EqualsTheBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 100; ++round) {
    Spec spec = drawSpec(random);
    spec.branches = 1 + static_cast<int32_t>(random() % 7);
    const DrawnLengths lengths = drawLengths(random, spec, 20);
    const OwnedTensor gates = drawTensor(random, spec.dtype, lengths.batches, lengths.queryTimes,
                                         spec.gatePerGroup ? spec.kvHeads : spec.queryHeads, 3);
    const Branches branches = drawBranches(random, spec, lengths);
    const Combination combination{.spec = spec,
                                  .gates = gates.view(),
                                  .branches = {branches.values[0], branches.values[1], branches.values[2]},
                                  .sequences = lengths.sequences};
    SCOPED_TRACE(specText(spec));
    expectNear(combine(combination), combineByMask(combination), 1e-12, "out");
  }
}

struct OneRow : ::testing::Test {
  Spec spec{.dtype = DType::kF32, .queryHeads = 4, .kvHeads = 2, .qkDim = 1, .vDim = 1};
  OwnedTensor gates = OwnedTensor::make(DType::kF32, 1, 1, 4, 3);
  std::vector<double> cmp = {1, 2, 3, 4}, sel = {10, 20, 30, 40}, win = {100, 200, 300, 400};

  std::vector<double> combined() const {
    return combine(
        {.spec = spec, .gates = gates.view(), .branches = {cmp, sel, win}, .sequences = denseSequences(1, 1, 1)});
  }
  void setGates(int64_t head, double gCmp, double gSel, double gWin) {
    setElement(gates, 0, 0, head, 0, gCmp);
    setElement(gates, 0, 0, head, 1, gSel);
    setElement(gates, 0, 0, head, 2, gWin);
  }
};

TEST_F(OneRow, GatesStandInTheOrderCmpSelWin) {
  setGates(0, 1, 0, 0);
  setGates(1, 0, 1, 0);
  setGates(2, 0, 0, 1);
  setGates(3, 2, 3, -1);
  EXPECT_EQ(combined(), (std::vector<double>{1, 20, 300, 8 + 120 - 400}));
}

TEST_F(OneRow, GatesOfAGroupServeItsHeads) {
  spec.gatePerGroup = true;
  setGates(0, 1, 0, 0);
  setGates(1, 0, 1, 0);
  EXPECT_EQ(combined(), (std::vector<double>{1, 2, 30, 40}));
}

TEST_F(OneRow, SwitchedOffBranchesAddNothingWhateverTheyHold) {
  for (int64_t head = 0; head < 4; ++head)
    setGates(head, 1, 1, std::nan(""));
  win = {};
  spec.branches = kBranchCmp | kBranchSel;
  EXPECT_EQ(combined(), (std::vector<double>{11, 22, 33, 44}));
}

TEST_F(OneRow, SoftmaxIsOverAllThreeLogits) {
  spec.gate = Gate::kSoftmax;
  for (int64_t head = 0; head < 4; ++head)
    setGates(head, std::log(2.0f), std::log(5.0f), 0);
  EXPECT_NEAR(combined()[0], (2 * 1 + 5 * 10 + 100) / 8.0, 1e-5);
  spec.branches = kBranchWin;
  EXPECT_NEAR(combined()[0], 100 / 8.0, 1e-5);
  // Large logits do not overflow.
  for (int64_t head = 0; head < 4; ++head)
    setGates(head, 1e30, 0, 1e30);
  spec.branches = kAllBranches;
  EXPECT_EQ(combined()[0], 50.5);
}

TEST_F(OneRow, SigmoidsAreIndependent) {
  spec.gate = Gate::kSigmoid;
  for (int64_t head = 0; head < 4; ++head)
    setGates(head, 0, 1000, -1000);
  EXPECT_EQ(combined()[1], 0.5 * 2 + 20);
}

} // namespace
} // namespace nsa::reference
