// Traps of comparisons (docs/specification.md 13): two sides that were the same fallback, or lengths that select every
// block. What is compared here are different kernels, asserted as such, and lengths that leave blocks out. For every
// device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"
#include "tools/support/operator_work.h"

#include <algorithm>
#include <set>

namespace nsa::test {
namespace {

using T = TensorName;

class ParityTest : public OperatorTest {
protected:
  // The reference's tolerance between two outputs of the same shape.
  static void expectAlike(const Spec &spec, const OperatorInputs &inputs, const tools::HostTensor &out,
                          const tools::HostTensor &lse, const tools::HostTensor &otherOut,
                          const tools::HostTensor &otherLse) {
    const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
    const std::vector<double> expected =
        reference::readRows(sequences, tools::viewOf(spec, T::kOut, otherOut), spec.queryHeads, spec.vDim);
    const std::vector<double> expectedLse =
        reference::readRows(sequences, tools::viewOf(spec, T::kLse, otherLse), spec.queryHeads, 1);
    reference::ErrorReport error =
        reference::compareRows(sequences, spec.queryHeads, spec.vDim, expected, tools::viewOf(spec, T::kOut, out));
    reference::compareLse(sequences, spec.queryHeads, expectedLse, tools::viewOf(spec, T::kLse, lse), error);
    const reference::Tolerance tolerance = reference::toleranceOf(spec.dtype);
    EXPECT_TRUE(error.within(tolerance)) << error.toString(tolerance);
  }

  // Dense attention over one branch's keys, by its own operator.
  NamedTensors denseOver(const OperatorInputs &inputs, T k, T v) {
    OperatorInputs dense;
    dense.spec = inputs.spec;
    dense.spec.op = Operator::kDense;
    dense.maxima = inputs.maxima;
    dense.extents = inputs.extents;
    dense.tensors = {{T::kQ, inputs[T::kQ]}, {T::kK, inputs[k]}, {T::kV, inputs[v]}};
    for (const T name : {T::kCuSeqlensQ, T::kCuSeqlensK})
      if (inputs.find(name, name))
        dense.tensors[name] = inputs[name];
    return run(dense);
  }

  // Selected and window attention over everything is dense attention, under maxima that allow longer sequences: their
  // own kernels run (`plan` asserts it), and under maxima that do not, the dense kernel.
  void checkCoveredIsDense(const Spec &spec, const tools::SequenceLengths &lengths, uint64_t seed) {
    const int64_t covered = std::min<int64_t>(int64_t{spec.selCount} * spec.selBlock, spec.window);
    const OperatorInputs inputs = tools::drawInputs(spec, lengths, seed);
    ASSERT_LE(inputs.maxima.seqlenK, covered);
    Maxima longer = inputs.maxima;
    longer.seqlenK = 4 * std::max<int64_t>(int64_t{spec.selCount} * spec.selBlock, spec.window);
    const NamedTensors sel = denseOver(inputs, T::kKSel, T::kVSel), win = denseOver(inputs, T::kKWin, T::kVWin);
    for (const Maxima &maxima : {inputs.maxima, longer}) {
      SCOPED_TRACE("max_seqlen_k " + std::to_string(maxima.seqlenK));
      const std::vector<std::string> kernels = expectedKernels(spec, maxima);
      const bool isRouted = maxima.seqlenK <= covered;
      EXPECT_EQ(std::ranges::count(kernels, "dense"), isRouted ? 2 : 0);
      EXPECT_EQ(std::ranges::count(kernels, "sel") + std::ranges::count(kernels, "window"), isRouted ? 0 : 2);
      const NamedTensors outputs = run(plan(spec, maxima), inputs);
      checkOutputs(inputs, outputs);
      expectAlike(spec, inputs, outputs.at(T::kOSel), outputs.at(T::kLseSel), sel.at(T::kOut), sel.at(T::kLse));
      expectAlike(spec, inputs, outputs.at(T::kOWin), outputs.at(T::kLseWin), win.at(T::kOut), win.at(T::kLse));
    }
  }
};

class ParityTraps : public ParityTest, public ::testing::WithParamInterface<DType> {
protected:
  static DType dtype() { return GetParam(); }
};
NSA_INSTANTIATE_PER_TYPE(ParityTraps);

class DrawnParity : public ParityTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Drawn, DrawnParity, ::testing::Range(0, drawnCases(4)));

TEST_P(ParityTraps, SelAndWindowThatCoverAllAreDense) {
  std::mt19937_64 random(freshSeed());
  Spec spec = smallSpec(Operator::kNsa, dtype());
  spec.window = spec.selCount * spec.selBlock;
  const int64_t covered = spec.window;
  checkCoveredIsDense(spec, {{covered, covered}, {covered, covered}}, random());
  spec.layout = Layout::kPacked;
  const auto shorter = static_cast<int64_t>(1 + random() % static_cast<uint64_t>(covered));
  checkCoveredIsDense(spec, {{shorter, 20}, {shorter, covered}}, random());
}

TEST_P(DrawnParity, SelAndWindowThatCoverAllAreDense) {
  std::mt19937_64 random(freshSeed() + static_cast<uint64_t>(GetParam()));
  const Geometry &geometry = drawnGeometries(*session)[static_cast<size_t>(GetParam())];
  OperatorCase shape = drawOperatorCase(geometry, Operator::kNsa, random, {.maxTokens = 300, .maxWork = 1e7});
  shape.spec.branches = kAllBranches;
  const int64_t longest = *std::ranges::max_element(shape.lengths.k);
  // As many blocks as it takes, and no sequence that they do not cover.
  const int64_t blocks = (longest + shape.spec.selBlock - 1) / shape.spec.selBlock;
  shape.spec.selCount = static_cast<int32_t>(std::clamp<int64_t>(blocks, shape.spec.selCount, Spec::kMostSelCount));
  shape.spec.window = static_cast<int32_t>(std::max<int64_t>(1, longest));
  for (size_t i = 0; i < shape.lengths.k.size(); ++i) {
    shape.lengths.k[i] = std::min<int64_t>(shape.lengths.k[i], int64_t{shape.spec.selCount} * shape.spec.selBlock);
    shape.lengths.q[i] = std::min(shape.lengths.q[i], shape.lengths.k[i]);
  }
  SCOPED_TRACE(shape.text());
  checkCoveredIsDense(shape.spec, shape.lengths, random());
}

// A list of its own makes `sel` any other attention: of all blocks, dense; of the last ones, a window of whole blocks.
TEST_P(ParityTraps, SelOfAllBlocksIsDense) {
  Spec spec = smallSpec(Operator::kSel, dtype());
  const int64_t tokens = int64_t{spec.selCount} * spec.selBlock;
  OperatorInputs inputs = tools::drawInputs(spec, {{tokens}, {tokens}}, freshSeed());
  auto *lists = reinterpret_cast<int32_t *>(inputs.tensors.at(T::kBlockList).bytes.data());
  for (int64_t i = 0; i < inputs[T::kBlockList].elements(); ++i)
    lists[i] = static_cast<int32_t>(i % spec.selCount); // blocks behind the query attend nothing
  const NamedTensors sel = run(inputs);
  const NamedTensors dense = denseOver(inputs, T::kKSel, T::kVSel);
  expectAlike(spec, inputs, sel.at(T::kOut), sel.at(T::kLse), dense.at(T::kOut), dense.at(T::kLse));
  EXPECT_EQ(sel.at(T::kReads).bytes, dense.at(T::kReads).bytes);
}

// The lists of the whole forward are its operators' lists, and so are its branches.
TEST_P(ParityTraps, TheForwardIsItsOperatorsOnTheSameLists) {
  const Spec spec = smallSpec(Operator::kNsa, dtype());
  const OperatorInputs inputs = tools::drawInputs(spec, {{220}, {220}}, freshSeed());
  ASSERT_GE(tools::selectingQueries(inputs), 100) << "nothing is left out";
  const NamedTensors whole = run(inputs);
  auto single = [&](Operator op, std::initializer_list<std::pair<T, const tools::HostTensor *>> tensors) {
    OperatorInputs part;
    part.spec = inputs.spec;
    part.spec.op = op;
    part.maxima = inputs.maxima;
    part.extents = inputs.extents;
    for (const auto &[name, tensor] : tensors)
      part.tensors[name] = *tensor;
    return run(part);
  };
  const NamedTensors compressed =
      single(Operator::kCompress, {{T::kKCmp, &inputs[T::kKCmp]}, {T::kVCmp, &inputs[T::kVCmp]}});
  EXPECT_EQ(compressed.at(T::kKComp).bytes, whole.at(T::kKComp).bytes);
  const NamedTensors cmp =
      single(Operator::kCmp,
             {{T::kQ, &inputs[T::kQ]}, {T::kKComp, &compressed.at(T::kKComp)}, {T::kVComp, &compressed.at(T::kVComp)}});
  expectAlike(spec, inputs, whole.at(T::kOCmp), whole.at(T::kLseCmp), cmp.at(T::kOut), cmp.at(T::kLse));
  const NamedTensors select =
      single(Operator::kSelect,
             {{T::kQ, &inputs[T::kQ]}, {T::kKComp, &compressed.at(T::kKComp)}, {T::kLse, &cmp.at(T::kLse)}});
  const NamedTensors sel = single(Operator::kSel, {{T::kQ, &inputs[T::kQ]},
                                                   {T::kKSel, &inputs[T::kKSel]},
                                                   {T::kVSel, &inputs[T::kVSel]},
                                                   {T::kBlockList, &whole.at(T::kBlockList)}});
  expectAlike(spec, inputs, whole.at(T::kOSel), whole.at(T::kLseSel), sel.at(T::kOut), sel.at(T::kLse));
  // Lists may differ by ties, which the reference tells from errors.
  NamedTensors listed = whole;
  listed[T::kBlockList] = select.at(T::kBlockList);
  const tools::OperatorCheck checked = tools::checkOperator(inputs, {{T::kBlockList, listed.at(T::kBlockList)}});
  EXPECT_TRUE(std::ranges::all_of(checked.outputs, [](const tools::OutputCheck &c) {
    return c.name != "block_list" || c.within;
  })) << checked.toString();
}

// Of the table's cases those that are named for it may select everything, and no others.
TEST_F(OperatorTest, TheTableLeavesBlocksOut) {
  const std::set<std::string> everything = {"nsa_every_block_selected", "nsa_shorter_than_a_block"};
  for (const OperatorCase &entry : operatorTable()) {
    if (entry.spec.op != Operator::kNsa && entry.spec.op != Operator::kSelect)
      continue;
    const OperatorInputs inputs = tools::drawInputs(entry.spec, entry.lengths, 1);
    EXPECT_EQ(tools::selectingQueries(inputs) == 0, everything.count(entry.name) == 1) << entry.name;
  }
}

} // namespace
} // namespace nsa::test
