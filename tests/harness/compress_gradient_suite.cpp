// The gradients of compression: what must not be read, what is computed on request, weights that a call leaves out, and
// what holds of every result. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/elements.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class CompressGradients : public OperatorTestPerType {
protected:
  static constexpr CmpKind kKinds[] = {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp};

  OperatorInputs draw(CmpKind kind) {
    Spec spec = smallSpec(Operator::kCompressBwd, dtype());
    spec.layout = Layout::kPacked;
    spec.cmpKind = kind;
    spec.mlpHidden = 24;
    spec.mlpActivation = Activation::kSilu;
    return tools::drawInputs(spec, {{0, 0, 0, 0}, {75, 0, 13, 50}}, random());
  }
  static void expectSame(const NamedTensors &actual, const NamedTensors &expected) {
    for (const auto &[name, tensor] : actual)
      EXPECT_EQ(tensor.bytes, expected.at(name).bytes) << tensorName(name);
  }

  std::mt19937_64 random{freshSeed()};
};
NSA_INSTANTIATE_PER_TYPE(CompressGradients);

// Tokens that no block covers, and rows behind the last block, may hold anything.
TEST_P(CompressGradients, WhatNoBlockCoversReachesNothing) {
  for (const CmpKind kind : kKinds) {
    SCOPED_TRACE(cmpKindName(kind));
    OperatorInputs inputs = draw(kind);
    const Spec &spec = inputs.spec;
    const tools::PlanHandle made = plan(spec, inputs.maxima);
    const NamedTensors clean = run(made, inputs);
    checkOutputs(inputs, clean);
    for (const double value :
         {1000.0, std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
      OperatorInputs spoilt = inputs;
      for (const T name : {T::kKCmp, T::kVCmp})
        for (const reference::Sequence &sequence : tools::sequencesOf(inputs)) {
          const int64_t blocks = spec.compressedBlocks(sequence.keys);
          for (int64_t token = blocks == 0 ? 0 : (blocks - 1) * spec.cmpStride + spec.cmpBlock; token < sequence.keys;
               ++token)
            fill(spec.dtype, timeOf(spec, spoilt.tensors.at(name), 0, sequence.keyBegin + token), value);
        }
      for (const T name : {T::kDKComp, T::kDVComp}) {
        tools::HostTensor &rows = spoilt.tensors.at(name);
        const std::vector<std::byte> own = rows.bytes;
        rows = tools::HostTensor::make(rows.dtype, {rows.shape[0] + 5, rows.shape[1], rows.shape[2]});
        fill(rows.dtype, rows.bytes, value);
        std::ranges::copy(own, rows.bytes.begin());
      }
      expectSame(run(made, spoilt), clean);
    }
  }
}

// An exact factor of the gradients of the rows is one of all gradients, as nothing else scales them.
TEST_P(CompressGradients, AreLinear) {
  for (const CmpKind kind : kKinds) {
    SCOPED_TRACE(cmpKindName(kind));
    OperatorInputs inputs = draw(kind);
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    const NamedTensors once = run(made, inputs);
    for (const T name : {T::kDKComp, T::kDVComp}) {
      tools::HostTensor &rows = inputs.tensors.at(name);
      for (int64_t i = 0; i < rows.elements(); ++i)
        reference::storeElement(rows.dtype, rows.bytes.data(), i, -4 * elementOf(rows, i));
    }
    for (const auto &[name, tensor] : run(made, inputs))
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        const double before = elementOf(once.at(name), i);
        // A subnormal number of fp16 may have lost digits that its multiple has. Gradients of hidden values are such
        // numbers too, and what they lose may turn the last bit of a sum.
        if (dtype() != DType::kF16)
          ASSERT_EQ(elementOf(tensor, i), -4 * before) << tensorName(name) << " " << i;
        else if (std::abs(before) > 1e-4)
          ASSERT_NEAR(elementOf(tensor, i), -4 * before, std::abs(4 * before) * 0x1p-10)
              << tensorName(name) << " " << i;
      }
  }
}

// The last gradient leaves a 32nd of each sum of the others, so that the gradients of the first bias, of the position
// embeddings and of the second product are small beside their terms. The bias makes all inputs of the relu positive,
// and hidden values so large that rounding takes much of what they have not in common.
TEST_P(CompressGradients, SumsThatCancelKeepTheirDigits) {
  OperatorInputs inputs = draw(CmpKind::kMlp);
  inputs.spec.mlpActivation = Activation::kRelu;
  for (const T name : {T::kB1K, T::kB1V})
    fill(inputs.spec.dtype, inputs.tensors.at(name).bytes, 64);
  for (const T name : {T::kDKComp, T::kDVComp}) {
    tools::HostTensor &rows = inputs.tensors.at(name);
    const int64_t columns = rows.shape.back(), last = rows.elements() - columns;
    for (int64_t column = 0; column < columns; ++column) {
      double others = 0;
      for (int64_t i = column; i < last; i += columns)
        others += elementOf(rows, i);
      reference::storeElement(rows.dtype, rows.bytes.data(), last + column, others * (-31.0 / 32));
    }
  }
  const Result<tools::RunResult> result =
      tools::runOnce(session->accelerator(), plan(inputs.spec, inputs.maxima).get(), inputs,
                     {T::kDB1K, T::kDB1V, T::kDPeK, T::kDPeV, T::kDW2K, T::kDW2V});
  ASSERT_TRUE(result) << result.status().toString();
  checkOutputs(inputs, result->outputs);
}

// An infinite hidden value makes its own row of dW2 infinite, and no NaN: what rounding takes from it counts as 0.
// There is one block, so that no infinite terms meet.
TEST_P(CompressGradients, OfAnInfiniteHiddenValueAreNoNaN) {
  Spec spec = draw(CmpKind::kMlp).spec;
  spec.mlpActivation = Activation::kRelu;
  spec.queryHeads = spec.kvHeads = 1;
  OperatorInputs inputs = tools::drawInputs(spec, {{0}, {spec.cmpBlock}}, random());
  for (const T name : {T::kB1K, T::kB1V})
    fill(spec.dtype, inputs.tensors.at(name).bytes, 64); // relu's slope is 1
  const tools::PlanHandle made = plan(spec, inputs.maxima);
  const NamedTensors finite = run(made, inputs);
  constexpr int64_t kHidden = 5;
  for (const T name : {T::kB1K, T::kB1V})
    reference::storeElement(spec.dtype, inputs.tensors.at(name).bytes.data(), kHidden,
                            std::numeric_limits<double>::infinity());
  for (const auto &[name, tensor] : run(made, inputs))
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double before = elementOf(finite.at(name), i);
      const bool isOfHidden = (name == T::kDW2K || name == T::kDW2V) && i / tensor.shape.back() == kHidden;
      ASSERT_EQ(elementOf(tensor, i), isOfHidden ? before * std::numeric_limits<double>::infinity() : before)
          << tensorName(name) << " " << i;
    }
}

// A gradient of a weight that the call does not bind is not computed, and changes no other.
TEST_P(CompressGradients, OfWeightsAreComputedOnRequest) {
  for (const CmpKind kind : kKinds) {
    SCOPED_TRACE(cmpKindName(kind));
    const OperatorInputs inputs = draw(kind);
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    const NamedTensors all = run(made, inputs);
    std::vector<std::set<T>> wanted = {{}};
    for (const auto &[name, tensor] : all)
      if (tensorRule(name).lead == Lead::kNone)
        wanted.push_back({name});
    EXPECT_EQ(wanted.size(), kind == CmpKind::kMean ? 1u : kind == CmpKind::kLinear ? 7u : 11u);
    for (const std::set<T> &some : wanted) {
      const Result<tools::RunResult> result = tools::runOnce(session->accelerator(), made.get(), inputs, some);
      ASSERT_TRUE(result) << result.status().toString();
      EXPECT_EQ(result->outputs.size(), 2 + some.size());
      expectSame(result->outputs, all);
    }
  }
}

// Position embeddings and biases may be left out, and then have no gradient.
TEST_P(CompressGradients, WeightsMayBeLeftOut) {
  for (const CmpKind kind : {CmpKind::kLinear, CmpKind::kMlp})
    for (const bool ofKeys : {true, false}) {
      SCOPED_TRACE(std::string(cmpKindName(kind)) + (ofKeys ? " of keys" : " of values"));
      OperatorInputs inputs = draw(kind);
      for (const T name :
           ofKeys ? std::vector{T::kPeK, T::kBK, T::kB1K, T::kB2K} : std::vector{T::kPeV, T::kBV, T::kB1V, T::kB2V})
        inputs.tensors.erase(name);
      const NamedTensors outputs = run(inputs);
      EXPECT_FALSE(outputs.contains(ofKeys ? T::kDPeK : T::kDPeV));
      EXPECT_TRUE(outputs.contains(ofKeys ? T::kDPeV : T::kDPeK));
      checkOutputs(inputs, outputs);
    }
}

// The gradient of `k` is d_k, and the gradient of `k_cmp` is d_k_cmp.
TEST_P(CompressGradients, HaveTheNamesOfTheTensorsThatAreRead) {
  OperatorInputs inputs = draw(CmpKind::kLinear);
  NamedTensors outputs = run(inputs);
  EXPECT_TRUE(outputs.contains(T::kDKCmp) && outputs.contains(T::kDVCmp));
  auto keys = inputs.tensors.extract(T::kKCmp);
  keys.key() = T::kK;
  inputs.tensors.insert(std::move(keys));
  outputs = run(inputs);
  EXPECT_TRUE(outputs.contains(T::kDK) && outputs.contains(T::kDVCmp) && !outputs.contains(T::kDKCmp));
  checkOutputs(inputs, outputs);
}

// Hidden values of exactly 0 send nothing back.
TEST_P(CompressGradients, TheSlopeOfAReluAtZeroIsZero) {
  OperatorInputs inputs = draw(CmpKind::kMlp);
  inputs.spec.mlpActivation = Activation::kRelu;
  for (const T name : {T::kPeK, T::kPeV, T::kB1K, T::kB1V})
    inputs.tensors.erase(name);
  for (const T name : {T::kKCmp, T::kVCmp})
    fill(inputs.spec.dtype, inputs.tensors.at(name).bytes, 0);
  const NamedTensors outputs = run(inputs);
  checkOutputs(inputs, outputs);
  for (const auto &[name, tensor] : outputs)
    if (name != T::kDB2K && name != T::kDB2V)
      for (int64_t i = 0; i < tensor.elements(); ++i)
        ASSERT_EQ(elementOf(tensor, i), 0) << tensorName(name) << " " << i;
}

// Without a block nothing depends on anything: all gradients are 0, whatever tokens and rows hold.
TEST_P(CompressGradients, AreZeroWithoutABlock) {
  for (const CmpKind kind : kKinds)
    for (const Layout layout : {Layout::kDense, Layout::kPacked})
      for (const int64_t tokens : {0, 15}) {
        SCOPED_TRACE(std::string(cmpKindName(kind)) + " " + std::string(layoutName(layout)) + " " +
                     std::to_string(tokens));
        Spec spec = draw(kind).spec;
        spec.layout = layout;
        OperatorInputs inputs = tools::drawInputs(spec, {{0, 0}, {tokens, tokens}}, random());
        for (const T name : {T::kKCmp, T::kVCmp})
          fill(spec.dtype, inputs.tensors.at(name).bytes, std::numeric_limits<double>::quiet_NaN());
        inputs.maxima.seqlenK = 40; // the call is shorter than the plan
        for (const auto &[name, tensor] : run(plan(spec, inputs.maxima), inputs))
          for (int64_t i = 0; i < tensor.elements(); ++i)
            ASSERT_TRUE(reference::isZero(elementOf(tensor, i))) << tensorName(name) << " " << i;
      }
}

} // namespace
} // namespace nsa::test
