// What a check of gradients says of rows without a finite reference, and of what the forward pass saved.
#include "tools/reference/elements.h"
#include "tools/reference/gradient/attention_gradient.h"
#include "tools/reference/gradient/nsa_gradient.h"
#include "tools/support/forward_pass.h"
#include "tools/support/operator_check.h"

#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace nsa::tools {
namespace {

using reference::TensorView;
using T = TensorName;

class OperatorCheckTest : public ::testing::Test {
protected:
  OperatorCheckTest() {
    Spec spec;
    spec.op = Operator::kDenseBwd;
    spec.dtype = DType::kF32;
    spec.queryHeads = 2;
    spec.kvHeads = 1;
    spec.qkDim = spec.vDim = 4;
    inputs = drawInputs(spec, {{5}, {9}}, 1);
  }
  void set(T name, int64_t element, double value) {
    HostTensor &tensor = inputs.tensors.at(name);
    reference::storeElement(tensor.dtype, tensor.bytes.data(), element, value);
  }

  TensorView view(T name) const { return viewOf(inputs.spec, name, inputs[name]); }
  // The gradients in fp64, times a factor.
  NamedTensors gradients(double factor) const {
    const Spec &spec = inputs.spec;
    const reference::Attention attention{
        .spec = spec, .q = view(T::kQ), .k = view(T::kKWin), .v = view(T::kVWin), .sequences = sequencesOf(inputs)};
    const reference::AttentionGradient exact =
        reference::differentiate(attention, reference::attend(attention),
                                 reference::readRows(attention.sequences, view(T::kDOut), spec.queryHeads, spec.vDim));
    NamedTensors outputs;
    for (const auto &[name, values] : {std::pair(T::kDQ, &exact.q),
                                       {T::kDelta, &exact.delta},
                                       {T::kDKWin, &exact.keys[0].k},
                                       {T::kDVWin, &exact.keys[0].v}}) {
      HostTensor &tensor = outputs[name] = HostTensor::make(DType::kF32, shapeOf(spec, name, inputs.extents));
      for (size_t i = 0; i < values->size(); ++i)
        reference::storeElement(tensor.dtype, tensor.bytes.data(), static_cast<int64_t>(i), factor * (*values)[i]);
    }
    return outputs;
  }

  OperatorInputs inputs;
};

TEST_F(OperatorCheckTest, WhatTheForwardPassSavedIsRightOrNamed) {
  EXPECT_TRUE(checkSaved(inputs).within()) << checkSaved(inputs).toString();
  set(T::kLse, 3, 50);
  const OperatorCheck wrong = checkSaved(inputs);
  EXPECT_FALSE(wrong.within());
  EXPECT_FALSE(wrong.isUnjudged());
  ASSERT_EQ(wrong.outputs.size(), 1u) << "lse is checked with the output that it belongs to";
  EXPECT_EQ(wrong.outputs[0].name, "out");
  inputs = drawInputs(inputs.spec, {{5}, {9}}, 1);
  set(T::kOut, 0, 50);
  EXPECT_FALSE(checkSaved(inputs).within());
}

// Errors between the limits of results and the limits of gradients, which are twice as large.
TEST_F(OperatorCheckTest, RowsOfGradientsAreJudgedByTheLimitsOfGradients) {
  set(T::kDOut, 0, std::numeric_limits<double>::quiet_NaN()); // of the first query, which attends no key behind 4
  const double limit = reference::toleranceOf(inputs.spec.dtype).relativeRms;
  const OperatorCheck near = checkOperator(inputs, gradients(1 + 1.5 * limit));
  EXPECT_FALSE(near.within());
  EXPECT_TRUE(near.isUnjudged()) << near.toString();
  EXPECT_FALSE(checkOperator(inputs, gradients(1 + 3 * limit)).isUnjudged());
}

// The gradients of nsa in fp64.
NamedTensors nsaGradients(const OperatorInputs &inputs) {
  const Spec &spec = inputs.spec;
  reference::Nsa nsa = referenceNsa(inputs);
  const auto view = [&](T name) { return viewOf(spec, name, inputs[name]); };
  nsa.kComp = view(T::kKComp);
  nsa.vComp = view(T::kVComp);
  nsa.blockLists = listView(spec, inputs[T::kBlockList]);
  const reference::NsaGradient exact = reference::differentiate(
      nsa, reference::forward(nsa), reference::readRows(nsa.sequences, view(T::kDOut), spec.queryHeads, spec.vDim));
  NamedTensors outputs;
  const auto put = [&](T name, const std::vector<double> &values) {
    HostTensor &tensor = outputs[name] = HostTensor::make(DType::kF32, shapeOf(spec, name, inputs.extents));
    for (size_t i = 0; i < values.size(); ++i)
      reference::storeElement(tensor.dtype, tensor.bytes.data(), static_cast<int64_t>(i), values[i]);
  };
  std::vector<double> q = exact.branches[1].q;
  for (size_t i = 0; i < q.size(); ++i)
    q[i] += exact.branches[0].q[i] + exact.branches[2].q[i];
  put(T::kDQ, q);
  put(T::kDGates, exact.gates);
  put(T::kDKCmp, exact.compression.k.tokens);
  put(T::kDVCmp, exact.compression.v.tokens);
  put(T::kDKSel, exact.branches[1].keys[0].k);
  put(T::kDVSel, exact.branches[1].keys[0].v);
  put(T::kDKWin, exact.branches[2].keys[0].k);
  put(T::kDVWin, exact.branches[2].keys[0].v);
  return outputs;
}

Spec nsaGradient() {
  Spec spec;
  spec.op = Operator::kNsaBwd;
  spec.dtype = DType::kF32;
  spec.queryHeads = 2;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 4;
  spec.cmpBlock = spec.selBlock = 16;
  spec.cmpStride = 8;
  spec.selCount = 3;
  spec.window = 8;
  return spec;
}

// Each tensor that nsa_bwd reads of the forward pass is looked at, but for the lists, which the caller may choose.
TEST(SavedCheck, NamesWhatTheForwardPassOfNsaDidNotSave) {
  const OperatorInputs right = drawInputs(nsaGradient(), {{64}, {64}}, 1);
  EXPECT_TRUE(checkSaved(right).within()) << checkSaved(right).toString();
  const auto faultsOf = [](const OperatorInputs &inputs) {
    std::set<std::string> faults;
    const OperatorCheck check = checkSaved(inputs);
    EXPECT_FALSE(check.isUnjudged());
    for (const OutputCheck &output : check.outputs)
      if (!output.within)
        faults.insert(output.name);
    return faults;
  };
  for (const auto &[wrong, named] : std::map<T, std::string>{{T::kOCmp, "o_cmp"},
                                                             {T::kOSel, "o_sel"},
                                                             {T::kOWin, "o_win"},
                                                             {T::kLseCmp, "o_cmp"},
                                                             {T::kLseSel, "o_sel"},
                                                             {T::kLseWin, "o_win"},
                                                             {T::kKComp, "k_comp"},
                                                             {T::kVComp, "v_comp"}}) {
    OperatorInputs inputs = right;
    HostTensor &tensor = inputs.tensors.at(wrong);
    reference::storeElement(tensor.dtype, tensor.bytes.data(), tensor.elements() - 1, 50);
    EXPECT_TRUE(faultsOf(inputs).contains(named)) << tensorName(wrong);
  }
  // A call may leave the outputs out, and binds the log-sum-exps.
  OperatorInputs inputs = right;
  for (const T name : {T::kOCmp, T::kOSel, T::kOWin, T::kKComp, T::kVComp})
    inputs.tensors.erase(name);
  EXPECT_EQ(faultsOf(inputs), std::set<std::string>());
  reference::storeElement(DType::kF32, inputs.tensors.at(T::kLseWin).bytes.data(), 0, 50);
  EXPECT_EQ(faultsOf(inputs), std::set<std::string>{"lse_win"});
  // Other lists than `select` makes, with the output that they give.
  inputs = right;
  for (size_t i = 0; int32_t &block : inputs.tensors.at(T::kBlockList).integers())
    block = i++ % 3 == 0 ? 0 : -1;
  EXPECT_EQ(faultsOf(inputs), std::set<std::string>{"o_sel"});
  addReferenceSaved(inputs);
  EXPECT_EQ(faultsOf(inputs), std::set<std::string>());
}

// Single queries and keys of nsa_bwd: each gradient is looked at, at the first and at the last one.
TEST(GradientCheck, ComparesSingleRowsOfTheGradientOfNsa) {
  constexpr int64_t kTokens = 64;
  const OperatorInputs inputs = drawInputs(nsaGradient(), {{kTokens}, {kTokens}}, 1);
  const std::vector<int64_t> rows = {0, 20, kTokens - 1};
  const NamedTensors right = nsaGradients(inputs);
  const OperatorCheck check = checkOperator(inputs, right, rows);
  EXPECT_TRUE(check.within()) << check.toString();
  EXPECT_EQ(check.outputs.size(), right.size());
  for (const auto &[name, tensor] : right)
    for (const int64_t token : {int64_t{0}, kTokens - 1}) {
      NamedTensors wrong = right;
      HostTensor &changed = wrong.at(name);
      const int64_t element = token * (changed.elements() / kTokens);
      reference::storeElement(changed.dtype, changed.bytes.data(), element, 1000);
      const OperatorCheck found = checkOperator(inputs, wrong, rows);
      for (const OutputCheck &output : found.outputs)
        EXPECT_EQ(output.within, output.name != tensorName(name)) << tensorName(name) << " of " << token;
    }
  // A query that is not compared.
  NamedTensors elsewhere = right;
  reference::storeElement(DType::kF32, elsewhere.at(T::kDQ).bytes.data(), 8 * 5, 1000);
  EXPECT_TRUE(checkOperator(inputs, elsewhere, rows).within());
}

} // namespace
} // namespace nsa::tools
