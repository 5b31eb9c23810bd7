// Traps of masks (docs/specification.md 13), on the whole forward: a single query behind a prefix, keys of the future,
// the query's own incomplete block. What may be attended is told by what moves the result. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class MaskTraps : public OperatorTestPerType {
protected:
  // Small weights would vanish in rounding; with this scale all are of one size.
  static Spec evenSpec() {
    Spec spec = smallSpec(Operator::kNsa, dtype());
    spec.scale = 0.05f;
    return spec;
  }

  void checkInfluenceOf(const Spec &spec, int64_t queries, int64_t keys, int64_t firstToken) {
    SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
    const OperatorInputs inputs = tools::drawInputs(spec, {{queries}, {keys}}, freshSeed());
    std::vector<Token> tokens;
    for (int64_t token = firstToken; token < keys; ++token)
      tokens.push_back({0, token});
    checkInfluence(plan(spec, inputs.maxima), inputs, tokens);
  }
};
NSA_INSTANTIATE_PER_TYPE(MaskTraps);

// With a top-left mask it saw key 0 alone.
TEST_P(MaskTraps, ASingleQueryBehindAPrefixSeesWhatItsPositionAllows) {
  // Behind 90 tokens six blocks begin, one more than are selected, and the window has left the first ones.
  checkInfluenceOf(evenSpec(), 1, 90, 0);
}

TEST_P(MaskTraps, EveryAllowedKeyMovesTheOutputAndNoFutureKeyDoes) { checkInfluenceOf(evenSpec(), 37, 125, 0); }

// The own block was dropped where it was not full yet.
TEST_P(MaskTraps, TheOwnIncompleteBlockIsAttendedUpToTheQuery) {
  const Spec spec = evenSpec();
  for (const int64_t behind : {1, 2, 8, 15, 16}) { // tokens of the last query's own block
    const int64_t keys = 96 + behind;
    // As one query of a prefix, and as the last of a batch.
    checkInfluenceOf(spec, 1, keys, 96);
    checkInfluenceOf(spec, keys, keys, 96);
  }
}

TEST_P(MaskTraps, TheLastQueryIsTheSameAloneAndInABatch) {
  std::mt19937_64 random(freshSeed());
  const Spec spec = smallSpec(Operator::kNsa, dtype());
  for (const int64_t keys : {97, 103, 112, 150}) {
    const OperatorInputs whole = tools::drawInputs(spec, {{keys}, {keys}}, random());
    OperatorInputs alone = tools::layOut(spec, {{1}, {keys}});
    for (const auto &[name, tensor] : whole.tensors) {
      if (tensorRule(name).lead != Lead::kQueries) {
        alone.tensors[name] = tensor;
        continue;
      }
      tools::HostTensor last = tools::HostTensor::make(tensor.dtype, tools::shapeOf(spec, name, alone.extents));
      tools::HostTensor source = tensor;
      std::ranges::copy(timeOf(spec, source, 0, keys - 1), last.bytes.begin());
      alone.tensors[name] = std::move(last);
    }
    const NamedTensors batch = run(whole), single = run(alone);
    checkOutputs(whole, batch);
    checkOutputs(alone, single);
    for (const T name : {T::kBlockList, T::kReads})
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        EXPECT_TRUE(
            sameBytes(headOf(spec, single.at(name), 0, 0, head), headOf(spec, batch.at(name), 0, keys - 1, head)))
            << tensorName(name) << " of " << keys << " keys";
  }
}

// Not even through compressed blocks, their normaliser, the lists or sums that multiply it by zero.
TEST_P(MaskTraps, PoisonInTheFutureReachesNoRow) {
  std::mt19937_64 random(freshSeed());
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    Spec spec = smallSpec(Operator::kNsa, dtype());
    spec.layout = layout;
    const tools::SequenceLengths lengths = layout == Layout::kPacked ? tools::SequenceLengths{{40, 0, 90}, {70, 9, 140}}
                                                                     : tools::SequenceLengths{{110, 110}, {140, 140}};
    const OperatorInputs inputs = tools::drawInputs(spec, lengths, random());
    const tools::PlanHandle made = plan(spec, inputs.maxima);
    const NamedTensors clean = run(made, inputs);
    const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
    for (const double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()}) {
      for (int repeat = 0; repeat < 6; ++repeat) {
        const reference::Sequence &sequence = repeat % 2 ? sequences.back() : sequences.front();
        const auto query = static_cast<int64_t>(random() % static_cast<uint64_t>(sequence.queries));
        expectSameQuery(spec, clean, run(made, spoilAllBut(inputs, sequence, query, poison)), sequence, query);
        ASSERT_FALSE(HasFailure()) << layoutName(layout) << ", poison " << poison;
      }
    }
  }
}

} // namespace
} // namespace nsa::test
