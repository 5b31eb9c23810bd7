// Gradients of another type than their tensors, and gradients that are added to what a tensor holds. For every operator
// with gradients, on every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/elements.h"
#include "tools/support/forward_pass.h"
#include "tools/support/standard_normal.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace nsa::test {
namespace {

using T = TensorName;

// How a gradient is bound.
struct Bound {
  bool isFloat, accumulates;
};

double element(const tools::HostTensor &tensor, int64_t index) {
  return reference::loadElement(tensor.dtype, tensor.bytes.data(), index);
}

class GradientTypes : public OperatorTestPerType {
protected:
  Spec specOf(Operator op, Layout layout = Layout::kDense) const {
    Spec spec = smallSpec(op, dtype());
    spec.layout = layout;
    return spec;
  }

  // Makes the calls with each way to bind the gradients, and compares them with each other and with the reference.
  void check(const Spec &spec, const tools::SequenceLengths &lengths, const tools::Spacing &spacing = {}) {
    check(tools::drawInputs(spec, lengths, random()), spacing);
  }
  void check(const OperatorInputs &inputs, const tools::Spacing &spacing = {}) {
    SCOPED_TRACE(std::string(operatorName(inputs.spec.op)) + " " + std::string(layoutName(inputs.spec.layout)));
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    const NamedTensors plain = run(made, inputs, spacing);
    const std::vector<T> names = gradientsIn(inputs);
    ASSERT_FALSE(names.empty());

    const NamedTensors wide =
        runBound(made, inputs, spacing, names, [](size_t) -> Bound { return {.isFloat = true, .accumulates = false}; });
    checkOutputs(inputs, wide);
    for (const T name : names)
      expectRounded(name, plain.at(name), wide.at(name));

    const std::function<Bound(size_t)> ways[] = {
        [](size_t) -> Bound { return {.isFloat = true, .accumulates = true}; },
        [](size_t) -> Bound { return {.isFloat = false, .accumulates = true}; },
        [](size_t i) -> Bound { return {.isFloat = i % 2 == 0, .accumulates = i % 3 != 0}; },
        [](size_t i) -> Bound { return {.isFloat = i % 3 == 0, .accumulates = i % 2 != 0}; }};
    for (const auto &way : ways) {
      SCOPED_TRACE("way " + std::to_string(&way - ways));
      NamedTensors held;
      const NamedTensors outputs = runBound(made, inputs, spacing, names, way, &held);
      for (size_t i = 0; i < names.size(); ++i)
        expectSum(names[i], outputs.at(names[i]), held.at(names[i]), wide.at(names[i]), way(i).accumulates);
      // What is no gradient has one type.
      for (const auto &[name, tensor] : outputs)
        if (std::ranges::find(names, name) == names.end())
          EXPECT_EQ(tensor.bytes, plain.at(name).bytes) << tensorName(name);
    }
  }

  static std::vector<T> gradientsIn(const OperatorInputs &inputs) {
    const std::set<T> outputs = tools::outputsOf(inputs.spec, inputs.tensors, tools::allOutputs(inputs.spec.op));
    std::set<T> names;
    for (const Operand &operand : operandsOf(inputs.spec.op))
      if (const T name = operand.isWritten() ? tools::outputName(operand, inputs.tensors) : operand.name;
          operand.isGradient() && outputs.contains(name))
        names.insert(name);
    return {names.begin(), names.end()};
  }

  NamedTensors runBound(const tools::PlanHandle &made, const OperatorInputs &inputs, const tools::Spacing &spacing,
                        const std::vector<T> &names, const std::function<Bound(size_t)> &way,
                        NamedTensors *contents = nullptr) {
    tools::StandardNormal normal;
    tools::HeldOutputs held;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto [isFloat, accumulates] = way(i);
      const std::vector<int64_t> shape = tools::shapeOf(inputs.spec, names[i], inputs.extents);
      const DType type = isFloat ? DType::kF32 : inputs.spec.dtype;
      held[names[i]] = {.content = contents ? tools::drawTensor(type, shape, [&] { return normal(random); })
                                            : tools::HostTensor::make(type, shape, tools::kNanByte),
                        .accumulate = accumulates};
      if (contents)
        (*contents)[names[i]] = held[names[i]].content;
    }
    Result<tools::RunResult> result =
        tools::runOnce(session->accelerator(), made.get(), inputs, tools::allOutputs(inputs.spec.op), spacing, held);
    if (!result)
      throw std::runtime_error(result.status().toString());
    return std::move(result->outputs);
  }

  static void expectRounded(T name, const tools::HostTensor &plain, const tools::HostTensor &wide) {
    ASSERT_EQ(wide.dtype, DType::kF32);
    ASSERT_EQ(wide.elements(), plain.elements());
    for (int64_t i = 0; i < wide.elements(); ++i) {
      if (std::isnan(element(wide, i))) { // nothing is stored there
        ASSERT_TRUE(std::isnan(element(plain, i))) << tensorName(name) << " " << i;
        continue;
      }
      ASSERT_EQ(element(plain, i), rounded(plain.dtype, element(wide, i))) << tensorName(name) << " " << i;
    }
  }

  // `wide` has the gradient in fp32, and NaN where a call stores nothing.
  static void expectSum(T name, const tools::HostTensor &output, const tools::HostTensor &held,
                        const tools::HostTensor &wide, bool accumulates) {
    ASSERT_EQ(output.dtype, held.dtype);
    for (int64_t i = 0; i < wide.elements(); ++i) {
      const auto gradient = static_cast<float>(element(wide, i)), before = static_cast<float>(element(held, i));
      const double wanted = std::isnan(gradient) ? before
                            : accumulates        ? rounded(output.dtype, before + gradient)
                                                 : rounded(output.dtype, gradient);
      ASSERT_EQ(element(output, i), wanted) << tensorName(name) << " " << i << ": " << gradient
                                            << (accumulates ? " added to " : " in the place of ") << before;
    }
  }

  static double rounded(DType type, double value) {
    std::array<std::byte, sizeof(float)> bytes{};
    reference::storeElement(type, bytes.data(), 0, value);
    return reference::loadElement(type, bytes.data(), 0);
  }

  std::mt19937_64 random{freshSeed()};
};
NSA_INSTANTIATE_PER_TYPE(GradientTypes);

TEST_P(GradientTypes, OfRotation) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const RotaryStyle style : {RotaryStyle::kHalf, RotaryStyle::kInterleaved}) {
      Spec spec = specOf(Operator::kRotateBwd, layout);
      spec.rotaryDims = 32;
      spec.rotaryStyle = style;
      check(spec, {{50, 50}, {50, 50}});
    }
}

TEST_P(GradientTypes, OfGates) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const Gate gate : {Gate::kValue, Gate::kSigmoid, Gate::kSoftmax})
      for (const bool isPerGroup : {false, true}) {
        Spec spec = specOf(Operator::kCombineBwd, layout);
        spec.gate = gate;
        spec.gatePerGroup = isPerGroup;
        spec.branches = gate == Gate::kSigmoid ? kAllBranches : kBranchSel | kBranchWin;
        check(spec, {{50, 50}, {50, 50}});
      }
}

// Long sequences have partial gradients of keys, and short ones have none. `sel_bwd` has pieces of blocks.
TEST_P(GradientTypes, OfAttention) {
  for (const Operator op : {Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd, Operator::kSelBwd}) {
    const Maxima few{.batch = 2, .tokensQ = 32, .seqlenQ = 16, .seqlenK = 16};
    const Maxima many{.batch = 2, .tokensQ = 300, .seqlenQ = 150, .seqlenK = 150};
    EXPECT_EQ(GradientParts::make(specOf(op), few).own, 1);
    EXPECT_EQ(GradientParts::make(specOf(op), many).own > 1, op != Operator::kSelBwd);
    check(specOf(op), {{16, 16}, {16, 16}});
    check(specOf(op), {{150, 150}, {150, 150}});
    check(specOf(op, Layout::kPacked), {{90, 0, 7, 33}, {150, 0, 7, 129}});
    // `sel_bwd` has other kernels of queries for large groups.
    Spec large = specOf(op);
    large.queryHeads = 32;
    check(large, {{70}, {70}});
  }
}

// Rows that begin anywhere, in the order of heads.
TEST_P(GradientTypes, OfRowsThatAreNotAligned) {
  for (const Operator op : {Operator::kDenseBwd, Operator::kSelBwd, Operator::kCombineBwd, Operator::kRotateBwd})
    check(specOf(op), {{40, 40}, {40, 40}}, {.base = 3, .gap = 5, .headMajor = true});
  Spec spec = specOf(Operator::kNsaBwd, Layout::kPacked);
  spec.qkDim = 36;
  spec.vDim = 20;
  check(spec, {{40, 30}, {60, 30}}, {.base = 1, .gap = 3, .headMajor = false});
}

TEST_P(GradientTypes, OfCompression) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp}) {
      Spec spec = specOf(Operator::kCompressBwd, layout);
      spec.cmpKind = kind;
      spec.mlpHidden = 24;
      spec.mlpActivation = Activation::kSilu;
      if (layout == Layout::kDense)
        check(spec, {{0, 0}, {75, 75}});
      else
        check(spec, {{0, 0, 0, 0}, {75, 0, 13, 50}});
    }
}

TEST_P(GradientTypes, OfTheWholeForwardPass) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const CmpKind kind : {CmpKind::kMean, CmpKind::kLinear, CmpKind::kMlp}) {
      Spec spec = specOf(Operator::kNsaBwd, layout);
      spec.cmpKind = kind;
      spec.mlpHidden = 40;
      spec.mlpActivation = Activation::kGelu;
      const tools::SequenceLengths lengths = layout == Layout::kDense
                                                 ? tools::SequenceLengths{{120, 120}, {150, 150}}
                                                 : tools::SequenceLengths{{90, 0, 7, 33}, {150, 0, 7, 129}};
      check(spec, lengths);
    }
}

// Rows so wide that the CPU's workspace does not hold all queries. Each query is in one chunk.
TEST_P(GradientTypes, OfChunksOfQueries) {
  Spec spec = specOf(Operator::kNsaBwd);
  spec.queryHeads = 128;
  spec.kvHeads = 1;
  spec.qkDim = 8;
  spec.vDim = 256;
  check(spec, {{200}, {200}});
}

// A branch that is off adds nothing, and the last branch that is on writes the gradient of the queries.
TEST_P(GradientTypes, OfSomeBranches) {
  for (int32_t branches = 1; branches < kAllBranches; ++branches) {
    SCOPED_TRACE(branches);
    Spec spec = specOf(Operator::kNsaBwd);
    spec.branches = branches;
    check(spec, {{90}, {90}});
  }
}

// One tensor serves all branches, and its gradient is added once.
TEST_P(GradientTypes, OfSharedTensors) {
  OperatorInputs inputs =
      tools::drawInputs(specOf(Operator::kNsaBwd), {{150, 150}, {150, 150}}, random(), tools::Saved::kByCaller);
  OperatorInputs apart = inputs;
  for (const auto &[name, others] : {std::pair(T::kK, std::array{T::kKCmp, T::kKSel, T::kKWin}),
                                     std::pair(T::kV, std::array{T::kVCmp, T::kVSel, T::kVWin})}) {
    inputs.tensors[name] = inputs[others[0]];
    for (const T other : others)
      inputs.tensors.erase(other);
  }
  tools::addReferenceSaved(inputs);
  check(inputs);
  // Queries of their own for the compressed branch have a gradient of their own.
  tools::StandardNormal normal;
  apart.tensors[T::kQCmp] = tools::drawTensor(dtype(), apart[T::kQ].shape, [&] { return normal(random); });
  tools::addReferenceSaved(apart);
  check(apart);
}

// --- errors

class GradientBindings : public OperatorTest {
protected:
  // Expects that a call is refused whose tensors `change` has changed, and that nothing is written.
  void expectRefused(const OperatorInputs &inputs, const std::string &message,
                     const std::function<void(tools::DeviceOperator &)> &change) {
    SCOPED_TRACE(message);
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    Result<tools::DeviceOperator> job =
        tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(inputs.spec.op));
    ASSERT_TRUE(job.isOk()) << job.status().toString();
    ASSERT_TRUE(job->allocateWorkspace(made.get()).isOk());
    const Result<NamedTensors> before = job->download();
    ASSERT_TRUE(before.isOk()) << before.status().toString();
    change(*job);
    const Status status = job->enqueue(made.get());
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(status.toString().find(message), std::string::npos) << status.toString();
    // Tensors are read as they were allocated, and not as they were bound.
    for (const auto &[name, tensor] : *before)
      job->tensor(name).dtype = static_cast<nsa_dtype>(tensor.dtype);
    const Result<NamedTensors> after = job->download();
    ASSERT_TRUE(after.isOk()) << after.status().toString();
    for (const auto &[name, tensor] : *after)
      EXPECT_EQ(tensor.bytes, before->at(name).bytes) << tensorName(name);
  }
  OperatorInputs inputsOf(Operator op, DType dtype = DType::kBf16) const {
    return tools::drawInputs(smallSpec(op, dtype), {{20}, {20}}, freshSeed());
  }
};

TEST_F(GradientBindings, OfATypeThatNoneHas) {
  const OperatorInputs inputs = inputsOf(Operator::kNsaBwd);
  expectRefused(inputs, "d_q.dtype = fp16: must be bf16, the io type, or fp32",
                [](tools::DeviceOperator &job) { job.tensor(T::kDQ).dtype = NSA_FP16; });
  expectRefused(inputs, "d_k_sel.dtype = int32: must be bf16, the io type, or fp32",
                [](tools::DeviceOperator &job) { job.tensor(T::kDKSel).dtype = NSA_INT32; });
  expectRefused(inputsOf(Operator::kDenseBwd, DType::kF32), "d_q.dtype = bf16: must be fp32",
                [](tools::DeviceOperator &job) { job.tensor(T::kDQ).dtype = NSA_BF16; });
  expectRefused(inputsOf(Operator::kRotateBwd), "out.dtype = fp16: must be bf16, the io type, or fp32",
                [](tools::DeviceOperator &job) { job.tensor(T::kOut).dtype = NSA_FP16; });
}

// Inputs, and results that are no gradients of what the call reads, have one type and are not added to.
TEST_F(GradientBindings, OfWhatIsNoGradient) {
  for (const T name : {T::kQ, T::kDOut, T::kOut, T::kLse, T::kDelta})
    expectRefused(inputsOf(Operator::kDenseBwd),
                  std::string(tensorName(name)) +
                      ".accumulate = 1: must be 0, because a call adds only to the gradients that it writes",
                  [name](tools::DeviceOperator &job) { job.tensor(name).accumulate = 1; });
  expectRefused(inputsOf(Operator::kCombineBwd),
                "d_o_sel.accumulate = 1: must be 0, because the gradient of a branch's output replaces",
                [](tools::DeviceOperator &job) { job.tensor(T::kDOSel).accumulate = 1; });
  expectRefused(inputsOf(Operator::kCombineBwd), "d_o_sel.dtype = fp32: must be bf16",
                [](tools::DeviceOperator &job) { job.tensor(T::kDOSel).dtype = NSA_FP32; });
  expectRefused(inputsOf(Operator::kCompressBwd), "d_k_comp.dtype = fp32: must be bf16",
                [](tools::DeviceOperator &job) { job.tensor(T::kDKComp).dtype = NSA_FP32; });
  expectRefused(inputsOf(Operator::kRotate), "out.accumulate = 1: must be 0",
                [](tools::DeviceOperator &job) { job.tensor(T::kOut).accumulate = 1; });
  expectRefused(inputsOf(Operator::kRotate), "out.dtype = fp32: must be bf16",
                [](tools::DeviceOperator &job) { job.tensor(T::kOut).dtype = NSA_FP32; });
}

TEST_F(GradientBindings, ThatAddInAnotherWay) {
  for (const int64_t value : {int64_t{2}, int64_t{-1}, int64_t{1} << 40})
    expectRefused(inputsOf(Operator::kWindowBwd), "d_v_win.accumulate = " + std::to_string(value) + ": must be 0 or 1",
                  [value](tools::DeviceOperator &job) { job.tensor(T::kDVWin).accumulate = value; });
}

// An fp32 gradient is twice as long as its tensor.
TEST_F(GradientBindings, ThatReachIntoAnotherTensor) {
  const OperatorInputs inputs = inputsOf(Operator::kDenseBwd);
  const auto bytes = static_cast<int64_t>(inputs[T::kQ].bytes.size());
  for (const bool isFloat : {false, true}) {
    const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
    Result<tools::DeviceOperator> job =
        tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(inputs.spec.op));
    ASSERT_TRUE(job.isOk()) << job.status().toString();
    ASSERT_TRUE(job->allocateWorkspace(made.get()).isOk());
    Result<tools::Buffer> room = session->accelerator().allocate(static_cast<size_t>(3 * bytes));
    ASSERT_TRUE(room.isOk()) << room.status().toString();
    auto *begin = static_cast<std::byte *>(room->data());
    job->tensor(T::kDQ).data = begin;
    job->tensor(T::kDQ).dtype = isFloat ? NSA_FP32 : NSA_BF16;
    job->tensor(T::kDKWin).data = begin + bytes; // as large as d_q, or smaller
    const Status status = job->enqueue(made.get());
    EXPECT_EQ(status.isOk(), !isFloat) << status.toString();
    if (isFloat)
      EXPECT_NE(status.toString().find("a gradient must not share memory with"), std::string::npos)
          << status.toString();
  }
}

TEST_F(GradientBindings, OnTheLengths) {
  Spec spec = smallSpec(Operator::kDenseBwd, DType::kBf16);
  spec.layout = Layout::kPacked;
  const OperatorInputs inputs = tools::drawInputs(spec, {{20, 30}, {20, 30}}, freshSeed());
  for (const T lengths : {T::kCuSeqlensQ, T::kCuSeqlensK})
    expectRefused(inputs, "d_v_win.data",
                  [lengths](tools::DeviceOperator &job) { job.tensor(T::kDVWin).data = job.tensor(lengths).data; });
}

// A gradient of `rotate` replaces its input, unless it has another type or is added.
TEST_F(GradientBindings, InThePlaceOfTheirInput) {
  const OperatorInputs inputs = inputsOf(Operator::kRotateBwd);
  const NamedTensors apart = run(inputs);
  const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
  Result<tools::DeviceOperator> job =
      tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(inputs.spec.op));
  ASSERT_TRUE(job.isOk()) << job.status().toString();
  ASSERT_TRUE(job->allocateWorkspace(made.get()).isOk());
  job->tensor(T::kOut).data = job->tensor(T::kX).data;
  job->tensor(T::kOut).accumulate = 1;
  const Status added = job->enqueue(made.get());
  EXPECT_NE(added.toString().find("out.data"), std::string::npos) << added.toString();
  EXPECT_NE(added.toString().find("must not share memory with x"), std::string::npos) << added.toString();
  job->tensor(T::kOut).accumulate = 0;
  const Status replaced = job->enqueue(made.get());
  EXPECT_TRUE(replaced.isOk()) << replaced.toString();
  const Result<tools::HostTensor> result = job->DeviceCall::download(T::kX);
  ASSERT_TRUE(result.isOk()) << result.status().toString();
  EXPECT_EQ(result->bytes, apart.at(T::kOut).bytes);
}

} // namespace
} // namespace nsa::test
