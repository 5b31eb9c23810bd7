// The rotation of heads: angles that the caller gives, elements that do not turn, and input that breaks a rule. For
// every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class RotationTest : public OperatorTestPerType {
protected:
  Spec specOf(Operator op, RotaryStyle style) const {
    Spec spec = smallSpec(op, dtype());
    spec.layout = Layout::kPacked;
    spec.rotaryDims = 32;
    spec.rotaryStyle = style;
    return spec;
  }
  // Tables of as many positions, whose values are no cosines: that a kernel reads them shows.
  static void addTables(OperatorInputs &inputs, int64_t positions, std::mt19937_64 &random) {
    std::normal_distribution<float> normal;
    for (const T name : {T::kCos, T::kSin})
      inputs.tensors[name] =
          tools::drawTensor(DType::kF32, {positions, inputs.spec.turningDims() / 2}, [&] { return normal(random); });
  }
};
NSA_INSTANTIATE_PER_TYPE(RotationTest);

TEST_P(RotationTest, AnglesOfATableAreRead) {
  std::mt19937_64 random(freshSeed());
  const tools::SequenceLengths lengths{{30, 0, 50}, {129, 0, 50}};
  for (const Operator op : {Operator::kRotate, Operator::kRotateBwd})
    for (const RotaryStyle style : {RotaryStyle::kHalf, RotaryStyle::kInterleaved}) {
      OperatorInputs inputs = tools::drawInputs(specOf(op, style), lengths, random());
      addTables(inputs, 131, random);
      // Positions that the tokens do not have.
      for (const T name : {T::kCos, T::kSin})
        fill(DType::kF32, std::span(inputs.tensors.at(name).bytes).subspan(size_t{129} * 16 * sizeof(float)),
             std::numeric_limits<double>::quiet_NaN());
      checkOutputs(inputs, run(inputs));
    }
}

// An element that is no number spoils its pair, and what does not turn is copied whatever it is.
TEST_P(RotationTest, ElementsMeetTheirPartnerAlone) {
  std::mt19937_64 random(freshSeed());
  for (const RotaryStyle style : {RotaryStyle::kHalf, RotaryStyle::kInterleaved}) {
    OperatorInputs inputs = tools::drawInputs(specOf(Operator::kRotate, style), {{40}, {60}}, random());
    const Spec &spec = inputs.spec;
    const tools::PlanHandle made = plan(spec, inputs.maxima);
    const NamedTensors clean = run(made, inputs);
    constexpr int64_t kTime = 17, kHead = 1;
    for (const int64_t column : {0, 15, 16, 31, 32, 47})
      for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        OperatorInputs bad = inputs;
        const auto size = static_cast<size_t>(dtypeBytes(spec.dtype));
        fill(spec.dtype,
             headOf(spec, bad.tensors.at(T::kX), 0, kTime, kHead).subspan(static_cast<size_t>(column) * size, size),
             value);
        const tools::HostTensor spoilt = run(made, bad).at(T::kOut);
        const int64_t partner = column >= 32 ? column : style == RotaryStyle::kHalf ? (column + 16) % 32 : column ^ 1;
        for (int64_t i = 0; i < spoilt.elements(); ++i) {
          const int64_t at = i - (kTime * spec.kvHeads + kHead) * spec.qkDim;
          if (at == column || at == partner)
            EXPECT_FALSE(std::isfinite(elementOf(spoilt, i))) << "column " << at;
          else
            ASSERT_EQ(elementOf(spoilt, i), elementOf(clean.at(T::kOut), i)) << "element " << i;
        }
        if (column >= 32 && std::isinf(value))
          EXPECT_EQ(elementOf(spoilt, (kTime * spec.kvHeads + kHead) * spec.qkDim + column), value);
      }
  }
}

TEST_P(RotationTest, ASpecThatBreaksARuleIsRefused) {
  struct Case {
    const char *field, *value;
    void (*damage)(Spec &spec);
  };
  const Case cases[] = {
      {"rotary_dims", "15", [](Spec &spec) { spec.rotaryDims = 15; }},
      {"rotary_dims", "50", [](Spec &spec) { spec.rotaryDims = 50; }},
      {"rotary_dims", "-2", [](Spec &spec) { spec.rotaryDims = -2; }},
      {"rotary_dims", "47", [](Spec &spec) { spec.rotaryDims = 0, spec.qkDim = 47; }},
      {"rotary_base", "0", [](Spec &spec) { spec.rotaryBase = 0; }},
      {"rotary_base", "-3", [](Spec &spec) { spec.rotaryBase = -3; }},
      {"rotary_base", "inf", [](Spec &spec) { spec.rotaryBase = std::numeric_limits<float>::infinity(); }},
      {"rotary_base", "nan", [](Spec &spec) { spec.rotaryBase = std::numeric_limits<float>::quiet_NaN(); }},
      {"rotary_style", "2", [](Spec &spec) { spec.rotaryStyle = static_cast<RotaryStyle>(2); }},
  };
  for (const Operator op : {Operator::kRotate, Operator::kRotateBwd})
    for (const auto &[field, value, damage] : cases) {
      Spec spec = specOf(op, RotaryStyle::kHalf);
      damage(spec);
      const Result<tools::PlanHandle> refused =
          tools::createPlan(session->engine(), spec, {1, 100, 100, 100}, session->accelerator().stream());
      ASSERT_FALSE(refused.isOk()) << field << " " << value;
      const Status status = refused.status();
      EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(status.error().field, field);
      EXPECT_EQ(status.error().value, value);
    }
}

TEST_P(RotationTest, TensorsThatBreakARuleAreRefused) {
  std::mt19937_64 random(freshSeed());
  OperatorInputs inputs = tools::drawInputs(specOf(Operator::kRotate, RotaryStyle::kHalf), {{40}, {60}}, random());
  addTables(inputs, 60, random);
  const tools::PlanHandle made = plan(inputs.spec, inputs.maxima);
  auto expectRefused = [&](const char *field, const std::string &rule, auto damage) {
    OperatorInputs bad = inputs;
    damage(bad);
    const Status status = tryRun(made, bad).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << status.toString();
    EXPECT_EQ(status.error().field, field);
    EXPECT_NE(status.error().rule.find(rule), std::string::npos) << status.error().rule;
  };
  auto table = [](int64_t positions, int64_t pairs) {
    return tools::drawTensor(DType::kF32, {positions, pairs}, [] { return 1.0f; });
  };
  expectRefused("sin", "cos and sin", [](OperatorInputs &bad) { bad.tensors.erase(T::kSin); });
  expectRefused("cos", "cos and sin", [](OperatorInputs &bad) { bad.tensors.erase(T::kCos); });
  expectRefused("cos.shape", "max_seqlen_k = 60", [&](OperatorInputs &bad) { bad.tensors[T::kCos] = table(59, 16); });
  expectRefused("sin.shape", "rotary_dims / 2", [&](OperatorInputs &bad) { bad.tensors[T::kSin] = table(60, 32); });
  expectRefused("x.shape", "kv_heads", [&](OperatorInputs &bad) {
    bad.tensors[T::kX] = tools::drawTensor(dtype(), {40, 3, 48}, [] { return 1.0f; });
  });
  expectRefused("x", "must be bound", [](OperatorInputs &bad) { bad.tensors.erase(T::kX); });
  expectRefused("out.shape", "qk_dim", [&](OperatorInputs &bad) { bad.spec.qkDim = 50; });
  expectRefused("out.shape", "kv_heads", [&](OperatorInputs &bad) { bad.spec.kvHeads = 3; });
}

} // namespace
} // namespace nsa::test
