// Traps of numbers (docs/specification.md 13), in every operator that has them: a window one token too wide, a
// log-sum-exp in base 2, a scale derived from v_dim. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class NumberTraps : public OperatorTestPerType {
protected:
  // Queries of zero: all scores are equal, and a log-sum-exp counts what was attended.
  static OperatorInputs counting(const Spec &spec, const tools::SequenceLengths &lengths) {
    OperatorInputs inputs = tools::drawInputs(spec, lengths, freshSeed());
    for (const T name : {T::kQ, T::kQCmp})
      if (auto found = inputs.tensors.find(name); found != inputs.tensors.end())
        fill(spec.dtype, found->second.bytes, 0);
    return inputs;
  }

  // That the branch's log-sum-exp is the natural logarithm of how many keys each query of the only sequence attends.
  template <typename Count>
  static void expectCounts(const Spec &spec, const tools::HostTensor &lse, const reference::Sequence &sequence,
                           Count count) {
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < spec.queryHeads; ++head) {
        const double attended = static_cast<double>(count(query, head));
        const double actual = elementOf(lse, query * spec.queryHeads + head);
        if (attended == 0)
          ASSERT_EQ(actual, -std::numeric_limits<double>::infinity()) << "query " << query;
        else
          ASSERT_NEAR(actual, std::log(attended), 2e-6 * std::log(attended) + 1e-6)
              << attended << " keys of query " << query << ", head " << head;
      }
  }
};
NSA_INSTANTIATE_PER_TYPE(NumberTraps);

TEST_P(NumberTraps, TheLseOfEachBranchIsNatural) {
  const Spec spec = smallSpec(Operator::kNsa, dtype());
  const OperatorInputs inputs = counting(spec, {{180}, {180}});
  const NamedTensors outputs = run(inputs);
  const reference::Sequence sequence = tools::sequencesOf(inputs).front();
  expectCounts(spec, outputs.at(T::kLseCmp), sequence,
               [&](int64_t query, int64_t) { return spec.compressedBlocks(query + 1); });
  // Equal scores: which blocks are listed follows from nothing but their number.
  expectCounts(spec, outputs.at(T::kLseSel), sequence, [&](int64_t query, int64_t) {
    const int64_t own = query / spec.selBlock;
    return std::min<int64_t>(spec.selCount - 1, own) * spec.selBlock + query % spec.selBlock + 1;
  });
  expectCounts(spec, outputs.at(T::kLseWin), sequence,
               [&](int64_t query, int64_t) { return std::min<int64_t>(query + 1, spec.window); });
}

TEST_P(NumberTraps, TheLseOfEachOperatorIsNatural) {
  std::vector<Spec> specs;
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel})
    specs.push_back(smallSpec(op, dtype()));
  makeReady(specs, {{140}, {140}});
  for (const Spec &spec : specs) {
    SCOPED_TRACE(operatorName(spec.op));
    const OperatorInputs inputs = counting(spec, {{140}, {140}});
    const NamedTensors outputs = run(inputs);
    const tools::HostTensor &reads = outputs.at(T::kReads); // its own test is the reference's comparison
    checkOutputs(inputs, outputs);
    expectCounts(spec, outputs.at(T::kLse), tools::sequencesOf(inputs).front(), [&](int64_t query, int64_t head) {
      return elementOf(reads, query * spec.kvHeads + head / spec.group());
    });
  }
}

// Around the widths of every template's tiles, at the sequence's length and beyond it.
TEST_P(NumberTraps, TheWindowHoldsExactlyItsTokens) {
  const tools::SequenceLengths lengths{{180}, {200}};
  std::vector<Spec> specs;
  for (const Operator op : {Operator::kWindow, Operator::kNsa})
    for (const int32_t window : {1,  2,  15,  16,  17,  31,  32,  33,  63,  64,  65,  79,  80,  81, 95,
                                 96, 97, 111, 112, 113, 127, 128, 129, 175, 176, 177, 199, 200, 201}) {
      specs.push_back(smallSpec(op, dtype()));
      specs.back().window = window;
      specs.back().branches = kBranchWin;
    }
  makeReady(specs, lengths);
  for (const Spec &spec : specs) {
    SCOPED_TRACE(std::string(operatorName(spec.op)) + ", window of " + std::to_string(spec.window));
    const OperatorInputs inputs = counting(spec, lengths);
    const NamedTensors outputs = run(inputs);
    const reference::Sequence sequence = tools::sequencesOf(inputs).front();
    auto count = [&](int64_t query, int64_t) { return std::min<int64_t>(sequence.position(query) + 1, spec.window); };
    expectCounts(spec, outputs.at(spec.op == Operator::kNsa ? T::kLseWin : T::kLse), sequence, count);
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        ASSERT_EQ(elementOf(outputs.at(T::kReads), query * spec.kvHeads + head), count(query, head));
  }
}

TEST_P(NumberTraps, TheScaleComesFromTheQueryHeadSize) {
  for (const Operator op :
       {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSelect, Operator::kSel, Operator::kNsa}) {
    SCOPED_TRACE(operatorName(op));
    Spec spec = smallSpec(op, dtype());
    ASSERT_NE(spec.qkDim, spec.vDim);
    OperatorInputs inputs = tools::drawInputs(spec, {{150}, {150}}, freshSeed());
    const NamedTensors byDefault = run(inputs);
    checkOutputs(inputs, byDefault);
    inputs.spec.scale = 1 / std::sqrt(static_cast<float>(spec.qkDim));
    const NamedTensors stated = run(inputs);
    inputs.spec.scale = 1 / std::sqrt(static_cast<float>(spec.vDim));
    const NamedTensors wrong = run(inputs);
    bool isMoved = false;
    for (const auto &[name, tensor] : byDefault) {
      EXPECT_EQ(tensor.bytes, stated.at(name).bytes) << tensorName(name);
      isMoved = isMoved || tensor.bytes != wrong.at(name).bytes;
    }
    EXPECT_TRUE(isMoved) << "the scale does nothing";
  }
}

} // namespace
} // namespace nsa::test
