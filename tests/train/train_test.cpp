// docs/examples/train beside the same model in fp64, whose attention is in plain loops. Differences of the loss check
// the gradient of the fp64 model, and the fp64 model checks the example's steps.
#include "docs/examples/train/adamw.h"
#include "docs/examples/train/model.h"
#include "docs/examples/train/nsa_attention.h"
#include "docs/examples/train/text.h"
#include "tests/harness/seed.h"
#include "tests/train/plain_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace example {
namespace {

constexpr std::int64_t kBatch = 2, kSteps = 20;
constexpr double kRate = 3e-3;
// Limits of relative errors. A gradient of the same parameters has the limit of docs/specification.md 11 for fp32. The
// parameters after some steps may differ more: in the first steps AdamW divides each gradient by about its own size, so
// the smallest gradients, which are mostly rounding, move their parameters as far as the largest ones do.
constexpr double kGradientError = 2e-5, kParametersError = 5e-4, kLossError = 2e-6;
// Two blocks whose scores differ by less may change places, because the two models' parameters differ.
constexpr double kTie = 1e-3;

std::vector<double> asDoubles(const std::vector<float> &values) { return {values.begin(), values.end()}; }

// ||a - b|| / ||b|| over a part of both.
double relativeError(const std::vector<float> &a, const std::vector<double> &b, const Part &part) {
  double errors = 0, squares = 0;
  for (std::int64_t at = part.begin; at < part.begin + part.count; ++at) {
    const auto i = static_cast<std::size_t>(at);
    const double error = static_cast<double>(a[i]) - b[i];
    errors += error * error;
    squares += b[i] * b[i];
  }
  return std::sqrt(errors / squares);
}

// Parameters that are all away from where training begins, where the values of attention are 0 and hide most gradients.
std::vector<float> movedParameters(const Layout &layout, std::mt19937 &random) {
  std::vector<float> parameters = initialParameters(layout, static_cast<std::uint32_t>(random()));
  for (float &parameter : parameters)
    parameter += 0.1f * (static_cast<float>(random()) / 4294967296.0f - 0.5f);
  return parameters;
}

class Training : public testing::Test {
protected:
  // The example's model, and the reference on the blocks that the example's last forward pass selected.
  struct Pair {
    explicit Pair(bool selectedGradient)
        : attention(kBatch, selectedGradient),
          plain([this](std::int64_t layer) -> const std::vector<std::int32_t> & { return attention.blockList(layer); },
                selectedGradient) {}
    NsaAttention attention;
    PlainAttention<double> plain;
    Model<float> model{attention};
    Model<double> reference{plain};
  };

  // The largest of the parts.
  double worstError(const std::vector<float> &a, const std::vector<double> &b) const {
    double worst = 0;
    for (const Part &part : layout.parts())
      worst = std::max(worst, relativeError(a, b, part));
    return worst;
  }

  const Text text = Text::read(NSA_TRAIN_TEXT);
  std::mt19937 random{static_cast<std::uint32_t>(nsa::test::freshSeed())};
  const Layout layout;
};

TEST_F(Training, TheGradientOfTheReferenceIsTheSlopeOfItsLoss) {
  Pair pair(true);
  const Batch batch = text.draw(1, random);
  const std::vector<float> start = movedParameters(layout, random);
  pair.model.loss(start, batch); // selects the blocks
  const std::vector<double> parameters = asDoubles(start);
  std::vector<double> gradient;
  pair.reference.lossAndGradient(parameters, batch, gradient);
  for (const Part &part : layout.parts()) {
    std::vector<double> direction(parameters.size());
    double slope = 0;
    for (std::int64_t at = part.begin; at < part.begin + part.count; ++at) {
      const auto i = static_cast<std::size_t>(at);
      direction[i] = static_cast<double>(random()) / 4294967296.0 - 0.5;
      slope += direction[i] * gradient[i];
    }
    const auto lossAt = [&](double distance) {
      std::vector<double> moved = parameters;
      for (std::size_t i = 0; i < moved.size(); ++i)
        moved[i] += distance * direction[i];
      return pair.reference.loss(moved, batch);
    };
    constexpr double kDistance = 1e-5;
    const double difference = (lossAt(kDistance) - lossAt(-kDistance)) / (2 * kDistance);
    EXPECT_NEAR(slope, difference, 1e-5 * std::abs(difference) + 1e-8) << "of the part that begins at " << part.begin;
  }
}

TEST_F(Training, TwentyStepsEqualTheReference) {
  Pair pair(true);
  std::vector<float> parameters = initialParameters(layout, static_cast<std::uint32_t>(random())), gradient;
  std::vector<double> expected = asDoubles(parameters), expectedGradient, gradientHere;
  AdamW<float> optimiser(layout);
  AdamW<double> expectedOptimiser(layout);
  double worstLoss = 0, worstGradient = 0, worstParameters = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const Batch batch = text.draw(kBatch, random);
    const double loss = pair.model.lossAndGradient(parameters, batch, gradient);
    pair.reference.lossAndGradient(asDoubles(parameters), batch, gradientHere);
    worstGradient = std::max(worstGradient, worstError(gradient, gradientHere));
    const double expectedLoss = pair.reference.lossAndGradient(expected, batch, expectedGradient);
    worstLoss = std::max(worstLoss, std::abs(loss - expectedLoss) / expectedLoss);
    optimiser.step(parameters, gradient, learningRate(step, kSteps, kRate));
    expectedOptimiser.step(expected, expectedGradient, learningRate(step, kSteps, kRate));
    worstParameters = std::max(worstParameters, worstError(parameters, expected));
  }
  std::printf("relative errors in %lld steps: loss %.1e, gradient %.1e, parameters %.1e, selected scores %.1e\n",
              static_cast<long long>(kSteps), worstLoss, worstGradient, worstParameters, pair.plain.shortfall);
  EXPECT_LE(worstLoss, kLossError);
  EXPECT_LE(worstGradient, kGradientError);
  EXPECT_LE(worstParameters, kParametersError);
  EXPECT_LE(pair.plain.shortfall, kTie) << "of a selected block beside one that was left out";
}

TEST_F(Training, TheGradientEqualsTheReference) {
  for (const bool selectedGradient : {true, false}) {
    Pair pair(selectedGradient);
    const Batch batch = text.draw(kBatch, random);
    const std::vector<float> parameters = movedParameters(layout, random);
    std::vector<float> gradient;
    std::vector<double> expected;
    pair.model.lossAndGradient(parameters, batch, gradient);
    pair.reference.lossAndGradient(asDoubles(parameters), batch, expected);
    const double worst = worstError(gradient, expected);
    std::printf("relative error of the gradient: %.1e\n", worst);
    EXPECT_LE(worst, kGradientError);
    double squares = 0; // of the gradient of the selected branch's keys and values
    for (const LayerParts &layer : layout.layers)
      for (std::int64_t row = 0; row < kWidth; ++row)
        for (const std::int64_t first : {column::kKeySel, column::kValueSel})
          for (std::int64_t i = 0; i < kKeyRow; ++i)
            squares += std::pow(
                gradient[static_cast<std::size_t>(layer.projection.begin + row * column::kEnd + first + i)], 2.0);
    EXPECT_EQ(squares != 0, selectedGradient);
  }
}

TEST_F(Training, SelectionLeavesBlocksOut) {
  Pair pair(true);
  const Batch batch = text.draw(1, random);
  pair.model.loss(initialParameters(layout, static_cast<std::uint32_t>(random())), batch);
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::vector<std::int32_t> &list = pair.attention.blockList(layer);
    for (std::int64_t slot = 0; slot < kKvHeads * kSelCount; ++slot) // of the last token
      EXPECT_GE(list[static_cast<std::size_t>((kSequence - 1) * kKvHeads * kSelCount + slot)], 0);
  }
  EXPECT_LT(kSelCount * kSelBlock, kSequence);
}

TEST(TrainingText, IsRefusedWhereItIsMissingOrShort) {
  const auto errorOf = [](const std::string &path) -> std::string {
    try {
      Text::read(path);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf("/nowhere/text"), "/nowhere/text cannot be read");
  EXPECT_THAT(errorOf(NSA_TRAIN_SHORT_TEXT), testing::HasSubstr("a tenth of the text must have more than 512"));
}

} // namespace
} // namespace example
