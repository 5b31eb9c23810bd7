// The gradient of the whole forward pass: which tensors it reads and writes, what it computes again, and what holds of
// every gradient. For every device.
#include "runtime/base/signature.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/elements.h"
#include "tools/support/forward_pass.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cmath>

namespace nsa::test {
namespace {

using T = TensorName;

class NsaGradients : public OperatorTest {
protected:
  static Spec spec(DType dtype, Layout layout = Layout::kDense) {
    Spec spec = smallSpec(Operator::kNsaBwd, dtype);
    spec.layout = layout;
    return spec;
  }

  // One tensor of each name serves all branches that may read it.
  static OperatorInputs drawShared(const Spec &spec, const tools::SequenceLengths &lengths, bool sharesK,
                                   bool sharesV) {
    OperatorInputs inputs = tools::drawInputs(spec, lengths, freshSeed(), tools::Saved::kByCaller);
    const auto share = [&](T name, std::initializer_list<T> others) {
      inputs.tensors[name] = inputs[*others.begin()];
      for (const T other : others)
        inputs.tensors.erase(other);
    };
    if (sharesK)
      share(T::kK, {T::kKCmp, T::kKSel, T::kKWin});
    if (sharesV)
      share(T::kV, {T::kVCmp, T::kVSel, T::kVWin});
    tools::addReferenceSaved(inputs);
    return inputs;
  }

  static std::vector<double> elements(const NamedTensors &outputs, T name) {
    const tools::HostTensor &tensor = outputs.at(name);
    std::vector<double> values(tensor.bytes.size() / static_cast<size_t>(dtypeBytes(tensor.dtype)));
    reference::loadElements(tensor.dtype, tensor.bytes.data(), 0, values);
    return values;
  }

  static void expectSameBits(const NamedTensors &outputs, const NamedTensors &others) {
    ASSERT_EQ(outputs.size(), others.size());
    for (const auto &[name, tensor] : outputs)
      EXPECT_EQ(tensor.bytes, others.at(name).bytes) << tensorName(name);
  }
};

TEST_F(NsaGradients, OneKeyServesAllBranches) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const auto &[sharesK, sharesV] : {std::pair(true, true), {true, false}, {false, true}}) {
      const OperatorInputs inputs = drawShared(spec(DType::kBf16, layout), {{150, 150}, {150, 150}}, sharesK, sharesV);
      const NamedTensors outputs = run(inputs);
      EXPECT_EQ(outputs.contains(T::kDK), sharesK);
      EXPECT_EQ(outputs.contains(T::kDKSel), !sharesK);
      EXPECT_EQ(outputs.contains(T::kDV), sharesV);
      EXPECT_TRUE(outputs.contains(T::kDQ) && !outputs.contains(T::kDQCmp));
      checkOutputs(inputs, outputs);
    }
}

// Two branches share keys, and the third one has its own.
TEST_F(NsaGradients, OneKeyServesTwoBranches) {
  for (const T own : {T::kKCmp, T::kKSel, T::kKWin}) {
    SCOPED_TRACE(tensorName(own));
    OperatorInputs inputs = tools::drawInputs(spec(DType::kF32), {{150}, {150}}, freshSeed(), tools::Saved::kByCaller);
    for (const T name : {T::kKCmp, T::kKSel, T::kKWin})
      if (name != own) {
        inputs.tensors[T::kK] = inputs[name];
        inputs.tensors.erase(name);
      }
    tools::addReferenceSaved(inputs);
    checkOutputs(inputs, run(inputs));
  }
}

// The gradient of a shared `k` is the sum of separate ones, rounded once.
TEST_F(NsaGradients, AddUp) {
  const OperatorInputs shared = drawShared(spec(DType::kF32), {{150}, {150}}, true, true);
  OperatorInputs apart = shared;
  for (const T name : {T::kKCmp, T::kKSel, T::kKWin})
    apart.tensors[name] = shared[T::kK];
  for (const T name : {T::kVCmp, T::kVSel, T::kVWin})
    apart.tensors[name] = shared[T::kV];
  apart.tensors[T::kQCmp] = shared[T::kQ];
  apart.tensors.erase(T::kK);
  apart.tensors.erase(T::kV);
  const NamedTensors sums = run(shared), parts = run(apart);
  checkOutputs(apart, parts);
  const auto expectSum = [&](T sum, std::initializer_list<T> names) {
    const std::vector<double> whole = elements(sums, sum);
    std::vector<double> added(whole.size());
    for (const T name : names) {
      const std::vector<double> own = elements(parts, name);
      for (size_t i = 0; i < own.size(); ++i)
        added[i] += own[i];
    }
    for (size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(whole[i], added[i], 1e-5 * (1 + std::abs(added[i]))) << tensorName(sum) << " " << i;
  };
  expectSum(T::kDK, {T::kDKCmp, T::kDKSel, T::kDKWin});
  expectSum(T::kDV, {T::kDVCmp, T::kDVSel, T::kDVWin});
  expectSum(T::kDQ, {T::kDQCmp, T::kDQ});
}

TEST_F(NsaGradients, ComputeAgainWhatIsNotBound) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    const tools::SequenceLengths lengths = layout == Layout::kDense ? tools::SequenceLengths{{130, 130}, {150, 150}}
                                                                    : tools::SequenceLengths{{90, 70}, {150, 130}};
    OperatorInputs inputs = tools::drawInputs(spec(DType::kBf16, layout), lengths, freshSeed());
    for (const T name : {T::kOSel, T::kKComp, T::kVComp, T::kOCmp, T::kOWin}) {
      inputs.tensors.erase(name);
      if (name != T::kKComp)
        checkOutputs(inputs, run(inputs));
    }
  }
}

TEST_F(NsaGradients, TakeTheCallersIndex) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    OperatorInputs inputs = tools::drawInputs(spec(DType::kBf16, layout), {{150, 150}, {150, 150}}, freshSeed());
    const NamedTensors own = run(inputs);
    OperatorInputs lists{.spec = inputs.spec, .maxima = inputs.maxima, .extents = inputs.extents, .tensors = {}};
    lists.spec.op = Operator::kInvert;
    for (const T name : {T::kBlockList, T::kCuSeqlensQ, T::kCuSeqlensK})
      if (inputs.tensors.contains(name))
        lists.tensors[name] = inputs[name];
    inputs.tensors[T::kBlockIndex] = run(lists).at(T::kBlockIndex);
    expectSameBits(run(inputs), own);
  }
}

// The forward pass makes the inverse on request, and the gradients do not depend on who made it.
TEST_F(NsaGradients, TakeTheIndexOfTheForwardPass) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    Spec own = spec(DType::kBf16, layout);
    own.makeIndex = true;
    OperatorInputs inputs = tools::drawInputs(own, {{70, 70}, {150, 150}}, freshSeed(), tools::Saved::kByCaller);
    const Status saved = tools::addSaved(inputs, session->engine(), session->accelerator());
    ASSERT_TRUE(saved.isOk()) << saved.toString();
    ASSERT_TRUE(inputs.tensors.contains(T::kBlockIndex));
    const NamedTensors outputs = run(inputs);
    checkOutputs(inputs, outputs);
    inputs.tensors.erase(T::kBlockIndex);
    expectSameBits(run(inputs), outputs);
  }
}

// The forward pass of any branches saves what their gradient takes, and no more. Without the branch cmp it compresses
// what the branch sel reads, only for the lists.
TEST_F(NsaGradients, TakeWhatTheForwardPassOfAnyBranchesSaved) {
  for (int32_t branches = 1; branches <= kAllBranches; ++branches)
    for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear}) {
      SCOPED_TRACE("branches " + std::to_string(branches) + " " + std::string(cmpKindName(kind)));
      Spec own = spec(DType::kF32); // as in OfWhatNoBranchReadsAreZero
      own.branches = branches;
      own.cmpKind = kind;
      OperatorInputs inputs = tools::drawInputs(own, {{70}, {150}}, freshSeed(), tools::Saved::kByCaller);
      const Status saved = tools::addSaved(inputs, session->engine(), session->accelerator());
      ASSERT_TRUE(saved.isOk()) << saved.toString();
      for (const T name : tools::savedFor(Operator::kNsaBwd))
        EXPECT_EQ(inputs.tensors.contains(name), name != T::kBlockIndex && takes(own, name)) << tensorName(name);
      EXPECT_TRUE(tools::checkSaved(inputs).within()) << tools::checkSaved(inputs).toString();
      checkOutputs(inputs, run(inputs));
    }
}

// Lengths in device memory say that an earlier sequence is longer than the plan allows: later sequences lie where the
// workspace has no room for them.
TEST_F(NsaGradients, StayInTheWorkspaceBehindALongSequence) {
  OperatorInputs inputs = tools::drawInputs(spec(DType::kBf16, Layout::kPacked), {{20, 40}, {400, 60}}, freshSeed());
  inputs.maxima.seqlenK = 64;
  inputs.maxima.seqlenQ = 64;
  const Outcome outcome = runAnyway(inputs);
  EXPECT_EQ(outcome.status.code(), session->isCuda() ? ErrorCode::kDeviceError : ErrorCode::kInvalidArgument)
      << outcome.status.toString();
}

// Either kernel of the selected branch's queries may be forced, and the other kernels of the plan are served as usual.
TEST_F(NsaGradients, TakeTheForcedKernel) {
  const OperatorInputs inputs = tools::drawInputs(spec(DType::kBf16), {{150, 150}, {150, 150}}, freshSeed());
  for (const char *variant : {"sel_dq", "sel_dq_slots"}) {
    SCOPED_TRACE(variant);
    tools::EngineSettings settings;
    settings.device = kTestDevice;
    settings.forceVariant = variant;
    const Result<tools::EngineHandle> forced = tools::createEngine(tools::withNothingStored(settings));
    ASSERT_TRUE(forced) << forced.status().toString();
    tools::Accelerator &accelerator = session->accelerator();
    const Result<tools::PlanHandle> made =
        tools::createPlan(forced->get(), inputs.spec, inputs.maxima, accelerator.stream());
    ASSERT_TRUE(made) << made.status().toString();
    const nlohmann::json description = tools::describePlan(made->get());
    std::vector<std::string> kernels;
    for (const nlohmann::json &launch : description["launches"])
      if (const std::string name = launch.value("operator", ""); name.starts_with("sel_dq"))
        kernels.push_back(name);
    EXPECT_EQ(kernels, std::vector<std::string>{variant});
    const Result<tools::RunResult> result = tools::runOnce(accelerator, made->get(), inputs, {});
    ASSERT_TRUE(result) << result.status().toString();
    checkOutputs(inputs, result->outputs);
  }
}

// The kernels of queries correct delta, for the gradient of the queries and for the kernels of keys: where a query sees
// few keys and one of them has nearly all weight, and where it sees many. Only the gradients of gates are delta itself.
TEST_F(NsaGradients, DoNotKeepAnErrorOfTheSavedOutput) {
  const struct {
    int32_t branch;
    T out;
    const char *variant;
  } kernels[] = {{kBranchCmp, T::kOCmp, ""},
                 {kBranchWin, T::kOWin, ""},
                 {kBranchSel, T::kOSel, "sel_dq"},
                 {kBranchSel, T::kOSel, "sel_dq_slots"}};
  for (const auto &kernel : kernels)
    for (const DType dtype : {DType::kBf16, DType::kF32}) {
      SCOPED_TRACE(std::string(tensorName(kernel.out)) + " " + kernel.variant + " " + std::string(dtypeName(dtype)));
      tools::EngineSettings settings;
      settings.device = kTestDevice;
      settings.forceVariant = kernel.variant;
      const Result<tools::EngineHandle> engine = tools::createEngine(tools::withNothingStored(settings));
      ASSERT_TRUE(engine) << engine.status().toString();
      Spec own = spec(dtype);
      own.branches = kernel.branch;
      own.scale = 1; // a few keys have most of the weight
      OperatorInputs inputs = tools::drawInputs(own, {{300}, {300}}, freshSeed());
      tools::HostTensor &out = inputs.tensors.at(kernel.out);
      for (int64_t i = 0; i < out.elements(); ++i)
        reference::storeElement(dtype, out.bytes.data(), i, 1.25 * elementOf(out, i));
      tools::Accelerator &accelerator = session->accelerator();
      const Result<tools::PlanHandle> made =
          tools::createPlan(engine->get(), inputs.spec, inputs.maxima, accelerator.stream());
      ASSERT_TRUE(made) << made.status().toString();
      Result<tools::RunResult> result = tools::runOnce(accelerator, made->get(), inputs, {});
      ASSERT_TRUE(result) << result.status().toString();
      result->outputs.erase(T::kDGates);
      checkOutputs(inputs, result->outputs);
    }
}

TEST_F(NsaGradients, AreTheSameBitsOnEachRun) {
  const OperatorInputs inputs = tools::drawInputs(spec(DType::kBf16), {{150, 150}, {150, 150}}, freshSeed());
  const NamedTensors first = run(inputs);
  for (int repeat = 0; repeat < (session->isCuda() ? 100 : 3); ++repeat)
    expectSameBits(run(inputs), first);
}

// Twice the gradient of the output gives twice each gradient, to the bit.
TEST_F(NsaGradients, AreLinear) {
  OperatorInputs inputs = tools::drawInputs(spec(DType::kF32), {{150}, {150}}, freshSeed());
  const NamedTensors once = run(inputs);
  tools::HostTensor &dOut = inputs.tensors.at(T::kDOut);
  for (int64_t i = 0; i < static_cast<int64_t>(dOut.bytes.size()) / 4; ++i)
    reference::storeElement(DType::kF32, dOut.bytes.data(), i,
                            2 * reference::loadElement(DType::kF32, dOut.bytes.data(), i));
  const NamedTensors twice = run(inputs);
  for (const auto &[name, tensor] : once) {
    const std::vector<double> single = elements(once, name), doubled = elements(twice, name);
    for (size_t i = 0; i < single.size(); ++i)
      ASSERT_EQ(doubled[i], 2 * single[i]) << tensorName(name) << " " << i;
  }
}

// Tensors of branches that are off have gradients of 0, in rows with gaps and in packed rows. `checkOutputs` looks at
// each of them.
TEST_F(NsaGradients, OfWhatNoBranchReadsAreZero) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (int32_t branches = 1; branches < kAllBranches; ++branches) {
      Spec own = spec(DType::kBf16, layout);
      own.branches = branches;
      own.cmpKind = branches % 2 ? CmpKind::kLinear : CmpKind::kMlp;
      own.mlpHidden = 24;
      SCOPED_TRACE(std::string(layoutName(layout)) + " branches " + std::to_string(branches));
      const bool packed = layout == Layout::kPacked;
      const tools::SequenceLengths lengths =
          packed ? tools::SequenceLengths{{90, 0, 7}, {150, 0, 7}} : tools::SequenceLengths{{70, 70}, {90, 90}};
      OperatorInputs inputs = tools::drawInputs(own, lengths, freshSeed(), tools::Saved::kByCaller);
      moveOffKink(inputs);
      tools::addReferenceSaved(inputs);
      const NamedTensors outputs = run(inputs, {.base = 3, .gap = 5, .headMajor = true});
      std::vector<T> names = {T::kDKCmp, T::kDVCmp, T::kDKSel, T::kDVSel, T::kDKWin, T::kDVWin, T::kDPeK, T::kDPeV};
      for (const T weight : {T::kDWK, T::kDBV, T::kDW1K, T::kDB1V, T::kDW2V, T::kDB2K})
        if (isZeroGradient(own, weight) || takes(own, weight))
          names.push_back(weight);
      EXPECT_EQ(names.size(), own.cmpKind == CmpKind::kLinear ? 10u : 12u);
      for (const T name : names)
        EXPECT_TRUE(outputs.contains(name)) << tensorName(name);
      EXPECT_EQ(outputs.contains(T::kDQCmp), !own.hasBranch(kBranchCmp));
      checkOutputs(inputs, outputs);
    }
}

// Queries that cmp alone does not read, and keys and values that no branch reads, whatever bytes they hold.
TEST_F(NsaGradients, OfUnreadTensorsAreZero) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    Spec own = spec(DType::kF32, layout);
    own.branches = kBranchCmp;
    OperatorInputs inputs = tools::drawInputs(own, {{60, 60}, {90, 90}}, freshSeed(), tools::Saved::kByCaller);
    inputs.tensors[T::kQCmp] = inputs[T::kQ];
    inputs.tensors[T::kK] = inputs[T::kKCmp];
    inputs.tensors[T::kV] = inputs[T::kVCmp];
    tools::addReferenceSaved(inputs);
    for (const T name : {T::kQ, T::kK, T::kV})
      std::ranges::fill(inputs.tensors[name].bytes, tools::kNanByte);
    const NamedTensors outputs = run(inputs);
    for (const T name : {T::kDQ, T::kDK, T::kDV, T::kDQCmp, T::kDKCmp})
      EXPECT_TRUE(outputs.contains(name)) << tensorName(name);
    checkOutputs(inputs, outputs);
  }
}

// Rows behind the last sequence of a packed batch do not exist, and stay as they are. NaN in what the call reads is no
// reason for another zero.
TEST_F(NsaGradients, OfNothingReachNoOtherRows) {
  for (const int32_t branches : {kBranchCmp, kBranchSel, kBranchWin}) {
    SCOPED_TRACE(branches);
    Spec own = spec(DType::kBf16, Layout::kPacked);
    own.branches = branches;
    const bool hasCmp = branches == kBranchCmp;
    OperatorInputs inputs = tools::drawInputs(own, {{50, 40}, {90, 60}}, freshSeed());
    if (hasCmp)
      inputs.tensors[T::kQCmp] = inputs[T::kQ];
    integers(inputs.tensors[T::kCuSeqlensQ])[2] = 50 + 33;
    integers(inputs.tensors[T::kCuSeqlensK])[2] = 90 + 53;
    for (const T name : {T::kGates, T::kDOut, T::kQ, T::kQCmp, T::kKCmp, T::kKComp, T::kKSel, T::kKWin})
      if (inputs.tensors.contains(name))
        std::ranges::fill(inputs.tensors[name].bytes, tools::kNanByte);
    NamedTensors outputs = run(inputs);
    for (const auto &[name, rows, row] :
         {std::tuple(hasCmp ? T::kDQ : T::kDQCmp, 83, int64_t{own.queryHeads} * own.qkDim),
          {hasCmp ? T::kDKSel : T::kDKCmp, 143, int64_t{own.kvHeads} * own.qkDim},
          {hasCmp ? T::kDVSel : T::kDVCmp, 143, int64_t{own.kvHeads} * own.vDim}}) {
      const std::vector<double> values = elements(outputs, name);
      const auto behind = values.begin() + rows * row;
      EXPECT_TRUE(std::all_of(values.begin(), behind, reference::isZero)) << tensorName(name);
      EXPECT_TRUE(behind != values.end() &&
                  std::all_of(behind, values.end(), [](double value) { return std::isnan(value); }))
          << tensorName(name);
    }
  }
}

// Of queries that see no compressed block, also where their gates are negative.
TEST_F(NsaGradients, OfQueriesThatSeeNoBlockAreZero) {
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    SCOPED_TRACE(dtypeName(dtype));
    Spec own = spec(dtype);
    own.branches = kBranchCmp;
    OperatorInputs inputs = tools::drawInputs(own, {{90}, {90}}, freshSeed());
    fill(dtype, inputs.tensors[T::kGates].bytes, -0.5);
    const std::vector<double> values = elements(run(inputs), T::kDQ);
    const auto behind = values.begin() + int64_t{own.cmpBlock - 1} * own.queryHeads * own.qkDim;
    EXPECT_TRUE(std::all_of(values.begin(), behind, reference::isZero));
    EXPECT_FALSE(std::all_of(behind, values.end(), reference::isZero));
  }
}

// A sequence's gradients do not depend on its neighbours, nor on its place in the batch.
TEST_F(NsaGradients, OfSequencesDoNotMix) {
  const OperatorInputs inputs = tools::drawInputs(spec(DType::kBf16), {{150, 150, 150}, {150, 150, 150}}, freshSeed());
  OperatorInputs turned = inputs;
  const auto turn = [](tools::HostTensor &tensor) {
    std::ranges::rotate(tensor.bytes, tensor.bytes.begin() + static_cast<int64_t>(tensor.bytes.size() / 3));
  };
  for (auto &[name, tensor] : turned.tensors)
    if (tensorRule(name).lead != Lead::kNone)
      turn(tensor);
  NamedTensors expected = run(inputs);
  for (auto &[name, tensor] : expected)
    turn(tensor);
  expectSameBits(run(turned), expected);
}

} // namespace
} // namespace nsa::test
