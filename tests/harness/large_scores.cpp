#include "tests/harness/large_scores.h"

#include "tools/reference/elements.h"
#include "tools/support/operator_check.h"

#include <array>
#include <cmath>
#include <span>

namespace nsa::test {
namespace {

using T = TensorName;

// All queries have this last column, and keys their level. What the other columns add is of the order of one.
constexpr double kQueryColumn = 32;

// How levels go on from one part of the keys to the next: the same everywhere, or steps of hundreds after the scale.
enum class Levels : uint8_t { kLarge, kNegative, kRising, kFalling, kMixed };
constexpr Levels kAllLevels[kLevels] = {Levels::kLarge, Levels::kNegative, Levels::kRising, Levels::kFalling,
                                        Levels::kMixed};
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

// Logits of each row's gates, in turns. All of them large, and one that leaves the others nothing.
constexpr std::array<double, 3> kGateLogits[] = {{-256, -256, -256},    {256, 256, 256},      {4096, 4096, 4096},
                                                 {-4096, -4096, -4096}, {-2048, 2048, -2048}, {-2048, -2048, 2048}};
// Logits of which a gate is near 1: each by its sigmoid, or one by the softmax of three.
constexpr std::array<double, 3> kSaturatedSigmoids[] = {{10, 12, 14}, {13, 11, 12}},
                                kSaturatedSoftmaxes[] = {{12, 0, -1}, {-2, 11, 1}, {1, 0, 13}};

void setLogits(OperatorInputs &inputs, std::span<const std::array<double, 3>> turns) {
  tools::HostTensor &gates = inputs.tensors.at(T::kGates);
  for (int64_t row = 0; row < gates.elements() / 3; ++row)
    for (size_t branch = 0; branch < 3; ++branch)
      reference::storeElement(gates.dtype, gates.bytes.data(), 3 * row + static_cast<int64_t>(branch),
                              turns[static_cast<size_t>(row) % turns.size()][branch]);
}

} // namespace

void setLargeScores(OperatorInputs &inputs, size_t levels, int64_t part) {
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
    const Levels own = kAllLevels[(levels + branch++) % kLevels];
    for (int64_t time = 0; time < keys.shape[1]; ++time)
      setLastColumn(inputs, keys, time, levelOf(own, time / part));
  }
}

void expectRightScores(const OperatorInputs &inputs, const NamedTensors &outputs) {
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

void setLargeLogits(OperatorInputs &inputs) {
  // A sum of sigmoids must not be a number that fp64 has and fp32 has not.
  setLogits(inputs, std::span(kGateLogits).subspan(inputs.spec.gate == Gate::kSigmoid ? 1 : 0));
}

void setSaturatedLogits(OperatorInputs &inputs) {
  const bool isSigmoid = inputs.spec.gate == Gate::kSigmoid;
  setLogits(inputs, isSigmoid ? std::span<const std::array<double, 3>>(kSaturatedSigmoids) : kSaturatedSoftmaxes);
}

} // namespace nsa::test
