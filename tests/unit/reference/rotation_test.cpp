// The rotation against the brute force and by hand.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"

#include <cmath>

namespace nsa::reference {
namespace {

Spec drawRotation(std::mt19937_64 &random) {
  Spec spec = drawSpec(random);
  spec.op = random() % 2 ? Operator::kRotate : Operator::kRotateBwd;
  spec.qkDim = 2 + static_cast<int32_t>(random() % 30);
  spec.rotaryDims = random() % 4 ? 2 * (1 + static_cast<int32_t>(random() % static_cast<uint64_t>(spec.qkDim / 2)))
                                 : spec.qkDim / 2 * 2;
  spec.rotaryBase = random() % 2 ? 10000 : 500000;
  spec.rotaryStyle = random() % 2 ? RotaryStyle::kHalf : RotaryStyle::kInterleaved;
  return spec;
}

TEST(Rotation, EqualsTheBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 100; ++round) {
    const Spec spec = drawRotation(random);
    const DrawnLengths lengths = drawLengths(random, spec, 20);
    const OwnedTensor x = drawTensor(random, spec.dtype, lengths.batches, lengths.queryTimes, spec.kvHeads, spec.qkDim);
    Rotation rotation{.spec = spec, .x = x.view(), .sequences = lengths.sequences};
    SCOPED_TRACE(specText(spec));
    expectNear(rotate(rotation), rotateByMatrix(rotation), 1e-12, "computed angles");
    const OwnedTensor cos = drawTensor(random, DType::kF32, 1, 20, 1, spec.rotaryDims / 2);
    const OwnedTensor sin = drawTensor(random, DType::kF32, 1, 20, 1, spec.rotaryDims / 2);
    rotation.cos = cos.view();
    rotation.sin = sin.view();
    expectNear(rotate(rotation), rotateByMatrix(rotation), 1e-12, "read angles");
  }
}

// Position 3 turns the first pair by 3 radians, and the second one by 3 / 100.
TEST(Rotation, ByHand) {
  Spec spec{.op = Operator::kRotate, .dtype = DType::kF32, .kvHeads = 1, .qkDim = 5};
  spec.rotaryDims = 4;
  OwnedTensor x = OwnedTensor::make(DType::kF32, 1, 1, 1, 5);
  for (int column = 0; column < 5; ++column)
    setElement(x, 0, 0, 0, column, column == 0 || column == 4 ? 1 : 0);
  Rotation rotation{.spec = spec, .x = x.view(), .sequences = denseSequences(1, 1, 4)};
  expectNear(rotate(rotation), {std::cos(3.0), 0, std::sin(3.0), 0, 1}, 1e-15, "half");
  rotation.spec.rotaryStyle = RotaryStyle::kInterleaved;
  expectNear(rotate(rotation), {std::cos(3.0), std::sin(3.0), 0, 0, 1}, 1e-15, "interleaved");
  rotation.spec.op = Operator::kRotateBwd;
  expectNear(rotate(rotation), {std::cos(3.0), -std::sin(3.0), 0, 0, 1}, 1e-15, "backward");
  for (int column = 0; column < 5; ++column)
    setElement(x, 0, 0, 0, column, column == 1 ? 1 : 0);
  rotation.spec.rotaryStyle = RotaryStyle::kHalf;
  expectNear(rotate(rotation), {0, std::cos(0.03), 0, -std::sin(0.03), 0}, 1e-15, "the second pair");
}

} // namespace
} // namespace nsa::reference
