// Gradients of phi whose sums over compressed blocks cancel. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/elements.h"
#include "tools/support/forward_pass.h"

#include <array>
#include <cmath>
#include <set>
#include <stdexcept>

namespace nsa::test {
namespace {

using T = TensorName;

class GradientsInFloats : public OperatorTest {
protected:
  NamedTensors runInFloats(const OperatorInputs &inputs, const std::set<T> &gradients) {
    tools::HeldOutputs inFloats;
    for (const T name : gradients)
      inFloats[name] = {.content =
                            tools::HostTensor::make(DType::kF32, tools::shapeOf(inputs.spec, name, inputs.extents))};
    Result<tools::RunResult> result =
        tools::runOnce(session->accelerator(), plan(inputs.spec, inputs.maxima).get(), inputs, gradients, {}, inFloats);
    if (!result)
      throw std::runtime_error(result.status().toString());
    return std::move(result->outputs);
  }
};

// Where the sums of phi's gradients over blocks cancel, the rounding of the blocks' gradients must not count. Each
// sequence has one block, which all its queries see, so that the gradient of its values is the sum of `d_out`. The last
// element leaves a 32nd of each sum of the others. In fp16 the sums are so small that what rounding takes from them has
// few digits, unless it is scaled. All tokens are 1 and all hidden values 64, so each gradient of a weight is a sum.
class BlocksThatCancel : public GradientsInFloats {
protected:
  static constexpr int64_t kSequences = 16, kQueries = 8, kKeys = 23;

  OperatorInputs draw(CmpKind kind, DType dtype, Layout layout) {
    Spec own = smallSpec(Operator::kNsaBwd, dtype);
    own.layout = layout;
    own.branches = kBranchCmp;
    own.gate = Gate::kValue;
    own.cmpBlock = own.cmpStride = own.selBlock = 16;
    own.cmpKind = kind;
    own.mlpHidden = kind == CmpKind::kMlp ? 24 : 0;
    own.mlpActivation = Activation::kRelu;
    const std::vector<int64_t> queries(kSequences, kQueries), keys(kSequences, kKeys);
    OperatorInputs inputs = tools::drawInputs(own, {queries, keys}, freshSeed());
    for (const auto &[name, value] :
         {std::pair{T::kGates, 1}, {T::kVCmp, 1}, {T::kPeK, 0}, {T::kPeV, 0}, {T::kW1V, 0}, {T::kB1V, 64}})
      if (auto found = inputs.tensors.find(name); found != inputs.tensors.end())
        fill(dtype, found->second.bytes, value);
    tools::HostTensor &dOut = inputs.tensors.at(T::kDOut);
    sums.assign(static_cast<size_t>(own.vDim), 0);
    ofTokens.assign(static_cast<size_t>(kSequences * own.kvHeads * own.vDim), 0);
    const int64_t perSequence = kQueries * own.queryHeads * own.vDim;
    for (int64_t i = 0; i < dOut.elements(); ++i) {
      double &sum = sums[static_cast<size_t>(i % own.vDim)];
      const bool isLast = i >= dOut.elements() - own.vDim;
      reference::storeElement(dtype, dOut.bytes.data(), i, isLast ? sum * (-31.0 / 32) : 0x1p-12 * elementOf(dOut, i));
      sum += elementOf(dOut, i);
      const int64_t head = i / own.vDim % own.queryHeads / own.group();
      ofTokens[static_cast<size_t>((i / perSequence * own.kvHeads + head) * own.vDim + i % own.vDim)] +=
          elementOf(dOut, i) / own.cmpBlock;
    }
    return inputs;
  }

  // Element i of a gradient.
  double expected(const OperatorInputs &inputs, T name, int64_t i) const {
    const Spec &own = inputs.spec;
    const double sum = sums[static_cast<size_t>(i % own.vDim)];
    if (name == T::kDVCmp) {
      const int64_t head = i / own.vDim % own.kvHeads, time = i / own.vDim / own.kvHeads;
      const int64_t row = time / kKeys * own.kvHeads + head;
      return time % kKeys < own.cmpBlock ? ofTokens[static_cast<size_t>(row * own.vDim + i % own.vDim)] : 0;
    }
    if (name == T::kDB1V || name == T::kDW1V) {
      double total = 0;
      for (int64_t column = 0; column < own.vDim; ++column)
        total += sums[static_cast<size_t>(column)] *
                 elementOf(inputs.tensors.at(T::kW2V), i % own.mlpHidden * own.vDim + column);
      return total;
    }
    return name == T::kDW2V ? 64 * sum : sum;
  }

  std::vector<double> sums;     // of d_out, for each column
  std::vector<double> ofTokens; // the gradient of each token of a block, for each sequence and key/value head
};

TEST_F(BlocksThatCancel, LeaveTheirDigits) {
  const struct {
    CmpKind kind;
    std::set<T> gradients;
  } kinds[] = {{CmpKind::kMean, {T::kDVCmp}},
               {CmpKind::kLinear, {T::kDBV, T::kDWV}},
               {CmpKind::kMlp, {T::kDB1V, T::kDW1V, T::kDB2V, T::kDW2V}}};
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const auto &[kind, gradients] : kinds)
      for (const DType dtype : {DType::kBf16, DType::kF16}) {
        const OperatorInputs inputs = draw(kind, dtype, layout);
        const NamedTensors got = runInFloats(inputs, gradients);
        for (const T name : gradients) {
          SCOPED_TRACE(std::string(tensorName(name)) + " " + std::string(dtypeName(dtype)) + " " +
                       std::string(layoutName(layout)));
          double errors = 0, squares = 0;
          for (int64_t i = 0; i < got.at(name).elements(); ++i) {
            const double wanted = expected(inputs, name, i);
            errors += std::pow(elementOf(got.at(name), i) - wanted, 2);
            squares += wanted * wanted;
          }
          EXPECT_LT(std::sqrt(errors / squares), dtype == DType::kBf16 ? 1e-3 : 1e-4);
        }
      }
}

// The gradient of a token's key is the cmp_block-th part of the gradient of its block. Where one block alone has tokens
// that are not 0, and these are 1, a row of dW is the gradient of this block. If either gradient were what rounding
// left, it would be a number of the io type.
TEST_F(GradientsInFloats, HaveMoreDigitsOfKeysThanTheirType) {
  constexpr int64_t kSequences = 16, kQueries = 8, kBlocks = 2;
  for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear})
    for (const DType dtype : {DType::kBf16, DType::kF16}) {
      SCOPED_TRACE(std::string(cmpKindName(kind)) + " " + std::string(dtypeName(dtype)));
      Spec own = smallSpec(Operator::kNsaBwd, dtype);
      own.branches = kBranchCmp;
      own.cmpBlock = own.cmpStride = own.selBlock = 16;
      own.cmpKind = kind;
      const int64_t tokens = kBlocks * own.cmpBlock + kQueries - 1; // each query sees each block
      const std::vector<int64_t> queries(kSequences, kQueries), keys(kSequences, tokens);
      OperatorInputs inputs = tools::drawInputs(own, {queries, keys}, freshSeed(), tools::Saved::kByCaller);
      if (const auto pe = inputs.tensors.find(T::kPeK); pe != inputs.tensors.end())
        fill(dtype, pe->second.bytes, 0);
      tools::HostTensor &k = inputs.tensors.at(T::kKCmp);
      for (int64_t i = 0; kind == CmpKind::kLinear && i < k.elements(); ++i) {
        const bool isOfFirst = i / own.qkDim % own.kvHeads == 0 && i / own.qkDim / own.kvHeads < own.cmpBlock;
        reference::storeElement(dtype, k.bytes.data(), i, isOfFirst ? 1 : 0);
      }
      tools::addReferenceSaved(inputs);
      const T name = kind == CmpKind::kMean ? T::kDKCmp : T::kDWK;
      const double blocks = kind == CmpKind::kMean ? own.cmpBlock : 1;
      const tools::HostTensor got = runInFloats(inputs, {name}).at(name);
      int64_t numbers = 0, rounded = 0;
      std::array<std::byte, 2> element = {};
      for (int64_t i = 0; i < got.elements(); ++i)
        if (const double ofBlock = blocks * elementOf(got, i); ofBlock != 0) {
          reference::storeElement(dtype, element.data(), 0, ofBlock);
          ++numbers;
          rounded += reference::loadElement(dtype, element.data(), 0) == ofBlock;
        }
      EXPECT_GT(numbers, 100);
      EXPECT_LT(rounded, numbers / 4);
    }
}

} // namespace
} // namespace nsa::test
