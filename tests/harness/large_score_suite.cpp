// Scores in the thousands, and maxima that lie hundreds apart between the tiles, blocks, splits and branches that are
// put together: in every softmax there is, of scores, of the selection's normaliser and of gates. A softmax that does
// not subtract its maximum, or that of another part, overflows or vanishes there. For every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/decode_fixture.h"
#include "tests/harness/seed.h"
#include "tests/reference/elements.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace nsa::test {
namespace {

using T = TensorName;

// All queries have this last column, and keys their level. What the other columns add is of the order of one.
constexpr double kQueryColumn = 32;

// How levels go on from one part of the keys to the next: the same everywhere, or steps of hundreds after the scale.
enum class Levels : uint8_t { kLarge, kNegative, kRising, kFalling, kMixed };
constexpr Levels kAllLevels[] = {Levels::kLarge, Levels::kNegative, Levels::kRising, Levels::kFalling, Levels::kMixed};
constexpr double kLevelStep = 48, kGreatestLevel = 15 * kLevelStep; // exact in every type

double levelOf(Levels levels, int64_t part) {
  switch (levels) {
  case Levels::kLarge:
    return kGreatestLevel;
  case Levels::kNegative:
    return -kGreatestLevel;
  case Levels::kRising:
    return kLevelStep * static_cast<double>(part % 16);
  case Levels::kFalling:
    return kGreatestLevel - kLevelStep * static_cast<double>(part % 16);
  case Levels::kMixed:
    return kLevelStep * static_cast<double>(part * 7 % 16);
  }
  return 0;
}

void setLastColumn(const OperatorInputs &inputs, tools::HostTensor &tensor, int64_t time, double value) {
  for (int64_t batch = 0; batch < tensor.shape[0]; ++batch)
    for (int64_t head = 0; head < tensor.shape[2]; ++head)
      reference::storeElement(tensor.dtype, headOf(inputs.spec, tensor, batch, time, head).data(), tensor.shape[3] - 1,
                              value);
}

// Of a dense call. Neighbouring keys in front of a border of `part` keys have one level. Each branch of several has
// levels of its own.
void setLevels(OperatorInputs &inputs, size_t firstLevels, int64_t part) {
  for (const T name : {T::kQ, T::kQCmp})
    if (auto found = inputs.tensors.find(name); found != inputs.tensors.end())
      for (int64_t time = 0; time < found->second.shape[1]; ++time)
        setLastColumn(inputs, found->second, time, kQueryColumn);
  size_t branch = 0;
  for (const T name : {T::kK, T::kKComp, T::kKCmp, T::kKSel, T::kKWin}) {
    auto found = inputs.tensors.find(name);
    if (found == inputs.tensors.end())
      continue;
    tools::HostTensor &keys = found->second;
    // Blocks are selected by scores that are equal, or apart beyond any rounding: a score in the thousands has no
    // digits for what lies between.
    if (name == T::kKCmp || inputs.spec.op == Operator::kSelect)
      fill(keys.dtype, keys.bytes, 0);
    const Levels levels = kAllLevels[(firstLevels + branch++) % std::size(kAllLevels)];
    for (int64_t time = 0; time < keys.shape[1]; ++time)
      setLastColumn(inputs, keys, time, levelOf(levels, time / part));
  }
}

// The contract's limits, but that fp32 knows such a score, and so the logarithm of its weight, only to some units of
// its own last place.
void expectRight(const OperatorInputs &inputs, const NamedTensors &outputs) {
  const double greatest = kQueryColumn * kGreatestLevel / std::sqrt(static_cast<double>(inputs.spec.qkDim));
  ASSERT_GT(greatest, 3000);
  const double unit = greatest * 0x1p-21;
  reference::Tolerance tolerance = reference::toleranceOf(inputs.spec.dtype);
  tolerance.relativeRms += unit;
  tolerance.worstRow += 4 * unit;
  tolerance.lse += unit;
  const tools::OperatorCheck checked = tools::checkOperator(inputs, outputs);
  EXPECT_FALSE(checked.outputs.empty());
  for (const tools::OutputCheck &output : checked.outputs) {
    const bool isAttention = output.name == "out" || output.name.starts_with("o_");
    EXPECT_TRUE(isAttention ? output.error->within(tolerance) : output.within) << output.name << ": " << output.text;
  }
}

class LargeScores : public OperatorTest, public ::testing::WithParamInterface<std::tuple<Operator, DType>> {};
INSTANTIATE_TEST_SUITE_P(All, LargeScores,
                         ::testing::Combine(::testing::Values(Operator::kDense, Operator::kWindow, Operator::kCmp,
                                                              Operator::kSelect, Operator::kSel, Operator::kNsa),
                                            ::testing::ValuesIn(servedTypes())),
                         [](const auto &info) {
                           return std::string(operatorName(std::get<0>(info.param))) + "_" +
                                  std::string(dtypeName(std::get<1>(info.param)));
                         });

TEST_P(LargeScores, NeitherOverflowNorVanish) {
  const auto &[op, dtype] = GetParam();
  const Spec spec = smallSpec(op, dtype);
  OperatorInputs inputs = tools::drawInputs(spec, {{200}, {200}}, freshSeed());
  std::vector<std::string> variants = {session->variant()};
  if (session->isCuda() && (op == Operator::kDense || op == Operator::kWindow || op == Operator::kCmp))
    variants.push_back("row_attention"); // a GPU template
  for (const std::string &variant : variants) {
    SCOPED_TRACE(variant);
    useVariant(variant);
    const tools::PlanHandle made = plan(spec, inputs.maxima);
    if (Session::isForced() && variants.size() > 1)
      EXPECT_EQ(tools::describePlan(made.get())["launches"].back().value("template", ""), variant);
    // A part is a block of those that are selected, or as wide as no tile.
    const bool compressed = op == Operator::kCmp || op == Operator::kSelect;
    for (size_t levels = 0; levels < std::size(kAllLevels); ++levels) {
      SCOPED_TRACE(levels);
      setLevels(inputs, levels, compressed ? 3 : spec.selBlock);
      expectRight(inputs, run(made, inputs));
      ASSERT_FALSE(HasFailure());
    }
  }
}

// Logits of each row's gates, in turns. All of them large, and one that leaves the others nothing.
constexpr std::array<double, 3> kGateLogits[] = {{-256, -256, -256},    {256, 256, 256},      {4096, 4096, 4096},
                                                 {-4096, -4096, -4096}, {-2048, 2048, -2048}, {-2048, -2048, 2048}};

// No sum of sigmoids is a number that fp64 has and fp32 has not, so those leave the first out.
void setGates(OperatorInputs &inputs) {
  const size_t first = inputs.spec.gate == Gate::kSigmoid ? 1 : 0;
  tools::HostTensor &gates = inputs.tensors.at(T::kGates);
  for (int64_t row = 0; row < gates.elements() / 3; ++row)
    for (size_t branch = 0; branch < 3; ++branch) {
      const size_t turn = first + static_cast<size_t>(row) % (std::size(kGateLogits) - first);
      reference::storeElement(gates.dtype, gates.bytes.data(), 3 * row + static_cast<int64_t>(branch),
                              kGateLogits[turn][branch]);
    }
}

class LargeGateLogits : public OperatorTestPerType {};
NSA_INSTANTIATE_PER_TYPE(LargeGateLogits);

TEST_P(LargeGateLogits, NeitherOverflowNorVanish) {
  for (const Gate gate : {Gate::kSoftmax, Gate::kSigmoid}) {
    SCOPED_TRACE(gateName(gate));
    Spec spec = smallSpec(Operator::kCombine, dtype());
    spec.gate = gate;
    OperatorInputs inputs = tools::drawInputs(spec, {{50}, {50}}, freshSeed());
    setGates(inputs);
    checkOutputs(inputs, run(inputs));
  }
}

// Several programs share the keys of a query in each branch, and their parts lie apart.
class DecodeLarge : public DecodeTest, public ::testing::WithParamInterface<DType> {
protected:
  static constexpr int64_t kTokens = 230, kBatch = 2, kNew = 5;

  static OperatorInputs history(Gate gate) {
    Spec spec = smallSpec(GetParam());
    spec.cmpBlock = 8;
    spec.cmpStride = 4;
    spec.selCount = 8;
    spec.window = 128;
    spec.gate = gate;
    return tools::drawInputs(spec, {{kTokens, kTokens}, {kTokens, kTokens}}, freshSeed());
  }
  void feedAll(const OperatorInputs &inputs) {
    Spec spec = inputs.spec;
    spec.op = Operator::kDecode;
    const CacheShape cache = {.room = 608, .mostNew = kNew, .pageSize = 16, .seed = 5};
    for (const int64_t programs : KeySplits::make(spec, {kBatch, kBatch * kNew, kNew, cache.room}).counts)
      ASSERT_GT(programs, 1);
    feed(inputs, cache, evenly(kTokens, kNew));
  }
};
NSA_INSTANTIATE_PER_TYPE(DecodeLarge);

TEST_P(DecodeLarge, ScoresNeitherOverflowNorVanish) {
  OperatorInputs inputs = history(Gate::kValue);
  for (size_t levels = 0; levels < std::size(kAllLevels); ++levels) {
    SCOPED_TRACE(levels);
    setLevels(inputs, levels, inputs.spec.selBlock);
    ASSERT_NO_FATAL_FAILURE(feedAll(inputs));
    expectRight(inputs, collected);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(DecodeLarge, GateLogitsNeitherOverflowNorVanish) {
  for (const Gate gate : {Gate::kSoftmax, Gate::kSigmoid}) {
    SCOPED_TRACE(gateName(gate));
    OperatorInputs inputs = history(gate);
    setGates(inputs);
    ASSERT_NO_FATAL_FAILURE(feedAll(inputs));
    const tools::OperatorCheck checked = tools::checkOperator(inputs, collected);
    EXPECT_TRUE(checked.within()) << checked.toString();
  }
}

} // namespace
} // namespace nsa::test
