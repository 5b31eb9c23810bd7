// The gated sum against the brute force and by hand.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"

#include <array>
#include <cmath>
#include <numeric>

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

// The gradients against differences of the sum, which is what its gradients are the slopes of.
TEST(Combination, TheGradientIsTheSlopeOfTheSum) {
  std::mt19937_64 random(test::freshSeed());
  constexpr double kStep = 1.0 / 1024;
  for (int round = 0; round < 100; ++round) {
    Spec spec = drawSpec(random);
    spec.dtype = DType::kF32;
    spec.branches = 1 + static_cast<int32_t>(random() % 7);
    const DrawnLengths lengths = drawLengths(random, spec, 20);
    const Sequence &sequence = lengths.sequences[random() % lengths.sequences.size()];
    if (sequence.queries == 0)
      continue;
    const int64_t gateHeads = spec.gatePerGroup ? spec.kvHeads : spec.queryHeads;
    OwnedTensor gates = drawTensor(random, spec.dtype, lengths.batches, lengths.queryTimes, gateHeads, 3);
    Branches branches = drawBranches(random, spec, lengths);
    const Combination combination{.spec = spec,
                                  .gates = gates.view(),
                                  .branches = {branches.values[0], branches.values[1], branches.values[2]},
                                  .sequences = lengths.sequences};
    SCOPED_TRACE(specText(spec));
    std::normal_distribution<double> normal;
    std::vector<double> dOut(combine(combination).size());
    for (double &each : dOut)
      each = normal(random);
    const CombinationGradient gradient = differentiate(combination, dOut);
    const auto loss = [&] {
      const std::vector<double> out = combineByMask(combination);
      return std::inner_product(out.begin(), out.end(), dOut.begin(), 0.0);
    };
    const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
    const int64_t query = below(sequence.queries), gateHead = below(gateHeads), branch = below(kBranchCount);
    const int64_t row = sequence.firstRow + query, time = sequence.queryBegin + query;
    double losses[2];
    const double gate = gates.view().at(sequence.batch, time, gateHead, branch);
    for (const int side : {0, 1}) {
      setElement(gates, sequence.batch, time, gateHead, branch, gate + (side ? kStep : -kStep));
      losses[side] = loss();
    }
    setElement(gates, sequence.batch, time, gateHead, branch, gate);
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * kStep),
                gradient.gates[static_cast<size_t>((row * gateHeads + gateHead) * 3 + branch)], 1e-4);

    std::vector<double> &values = branches.values[static_cast<size_t>(branch)];
    const auto element =
        static_cast<size_t>((row * spec.queryHeads + below(spec.queryHeads)) * spec.vDim + below(spec.vDim));
    const double value = values[element];
    for (const int side : {0, 1}) {
      values[element] = value + (side ? kStep : -kStep);
      losses[side] = loss();
    }
    values[element] = value;
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * kStep),
                spec.hasBranch(1 << branch) ? gradient.branches[static_cast<size_t>(branch)][element] : 0, 1e-9);
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
