// docs/examples/train beside the same model in fp64 with attention in plain loops, which is itself checked against
// differences of its loss.
#include "docs/examples/train/adamw.h"
#include "docs/examples/train/model.h"
#include "docs/examples/train/nsa_attention.h"
#include "docs/examples/train/text.h"
#include "tests/train/plain_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace example {
namespace {

constexpr std::int64_t kBatch = 2, kSteps = 20;
constexpr double kRate = 3e-3;

std::vector<double> asDoubles(const std::vector<float> &values) { return {values.begin(), values.end()}; }

// ||a - b|| / ||b||
template <typename Real> double relativeError(const std::vector<Real> &a, const std::vector<double> &b, const Part &part) {
  double errors = 0, squares = 0;
  for (std::int64_t at = part.begin; at < part.begin + part.count; ++at) {
    const auto i = static_cast<std::size_t>(at);
    const double error = static_cast<double>(a[i]) - b[i];
    errors += error * error;
    squares += b[i] * b[i];
  }
  return std::sqrt(errors / squares);
}

class Training : public testing::Test {
protected:
  const Text text = Text::read(NSA_TRAIN_TEXT);
  std::mt19937 random{7};
  NsaAttention attention{kBatch, true};
  Model<float> model{attention};
  PlainAttention<double> plain{[this](std::int64_t layer) -> const std::vector<std::int32_t> & {
    return attention.blockList(layer);
  }};
  Model<double> reference{plain};
};

TEST_F(Training, TheReferencesGradientIsTheSlopeOfItsLoss) {
  const Batch batch = text.draw(1, random);
  std::vector<float> start = initialParameters(model.layout, 1);
  for (std::int64_t i = 0; i < model.layout.head.count; ++i)
    start[static_cast<std::size_t>(model.layout.head.begin + i)] *= 10; // as if the model had learnt something
  model.loss(start, batch); // selects the blocks
  std::vector<double> parameters = asDoubles(start), gradient;
  reference.lossAndGradient(parameters, batch, gradient);
  for (const Part &part : model.layout.parts()) {
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
      return reference.loss(moved, batch);
    };
    constexpr double kDistance = 1e-5;
    const double difference = (lossAt(kDistance) - lossAt(-kDistance)) / (2 * kDistance);
    std::printf("part at %lld slope %.8e difference %.8e\n", (long long)part.begin, slope, difference);
    EXPECT_NEAR(slope, difference, 1e-5 * std::abs(difference) + 1e-9) << "of the part at " << part.begin;
  }
}

TEST_F(Training, TwentyStepsEqualTheReference) {
  std::vector<float> parameters = initialParameters(model.layout, 1), gradient;
  std::vector<double> expected = asDoubles(parameters), expectedGradient;
  AdamW<float> optimiser(model.layout);
  AdamW<double> expectedOptimiser(model.layout);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const Batch batch = text.draw(kBatch, random);
    const double loss = model.lossAndGradient(parameters, batch, gradient);
    const double expectedLoss = reference.lossAndGradient(expected, batch, expectedGradient);
    double worst = 0;
    for (const Part &part : model.layout.parts())
      worst = std::max(worst, relativeError(gradient, expectedGradient, part));
    optimiser.step(parameters, gradient, learningRate(step, kSteps, kRate));
    expectedOptimiser.step(expected, expectedGradient, learningRate(step, kSteps, kRate));
    std::printf("step %lld loss %.8f reference %.8f rel %.2e gradient %.2e parameters %.2e shortfall %.2e\n", (long long)step, loss, expectedLoss,
                std::abs(loss - expectedLoss) / expectedLoss, worst,
                relativeError(parameters, expected, {0, model.layout.count, 0}), plain.shortfall);
  }
}

} // namespace
} // namespace example
