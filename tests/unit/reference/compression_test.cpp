// Compression against the mask brute force and results known by hand.
#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"
#include "tools/reference/brute_force.h"
#include "tools/reference/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace nsa::reference {
namespace {

Compression compressionOf(const DrawnNsa &drawn) {
  const Nsa nsa = drawn.nsa();
  return {
      .spec = nsa.spec, .k = nsa.kCmp, .v = nsa.vCmp, .phiK = nsa.phiK, .phiV = nsa.phiV, .sequences = nsa.sequences};
}

// Elements of one type in their order: a number's neighbours are one away.
int64_t ordinal(DType dtype, const std::byte *bytes) {
  if (dtype == DType::kF32) {
    int32_t bits;
    std::memcpy(&bits, bytes, 4);
    return bits < 0 ? -int64_t{bits & 0x7fffffff} : bits;
  }
  int16_t bits;
  std::memcpy(&bits, bytes, 2);
  return bits < 0 ? -int64_t{bits & 0x7fff} : bits;
}

// Two roundings of nearly the same value differ only where it lies between two numbers, by one of them.
void expectSameRounding(const OwnedTensor &actual, const OwnedTensor &expected) {
  ASSERT_EQ(actual.bytes.size(), expected.bytes.size());
  const int64_t size = dtypeBytes(actual.dtype), count = static_cast<int64_t>(actual.bytes.size()) / size;
  int64_t differing = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t distance =
        std::abs(ordinal(actual.dtype, &actual.bytes[i * size]) - ordinal(actual.dtype, &expected.bytes[i * size]));
    differing += distance != 0;
    // What is left of sums that cancel may be more than a number away, but it is next to nothing.
    if (distance > 1) {
      ASSERT_NEAR(loadElement(actual.dtype, actual.bytes.data(), i),
                  loadElement(expected.dtype, expected.bytes.data(), i), 1e-13)
          << "element " << i;
    }
  }
  EXPECT_LE(differing, 1 + count / 50);
}

TEST(Compression, EqualsTheMaskBruteForce) {
  std::mt19937_64 random(test::freshSeed());
  for (int round = 0; round < 120; ++round) {
    const Spec spec = drawSpec(random);
    const DrawnNsa drawn = drawNsa(random, spec, drawLengths(random, spec, 40));
    SCOPED_TRACE(specText(spec));
    const Compression compression = compressionOf(drawn);
    const Compressed actual = compress(compression, 1 + round % 3), expected = compressByMask(compression);
    EXPECT_EQ(actual.k.times, expected.k.times);
    expectSameRounding(actual.k, expected.k);
    expectSameRounding(actual.v, expected.v);
  }
}

TEST(Compression, TheMeanIsRoundedOnce) {
  // Two tokens whose mean is a trace above the middle of two bf16 numbers, which fp32 would round to that middle.
  const Spec spec{
      .dtype = DType::kBf16, .queryHeads = 1, .kvHeads = 1, .qkDim = 1, .vDim = 1, .cmpBlock = 4, .cmpStride = 4};
  OwnedTensor k = OwnedTensor::make(DType::kBf16, 1, 4, 1, 1);
  setElement(k, 0, 0, 0, 0, 2.0);
  setElement(k, 0, 1, 0, 0, 2.0 + 0x1p-6);
  setElement(k, 0, 2, 0, 0, 0x1p-30);
  setElement(k, 0, 3, 0, 0, 0.0);
  Compression compression{.spec = spec, .k = k.view(), .v = k.view(), .sequences = denseSequences(1, 0, 4)};
  EXPECT_EQ(compress(compression).k.view().at(0, 0, 0, 0), 1.0 + 0x1p-7); // (4 + 2^-6 + 2^-30) / 4, upwards
  setElement(k, 0, 2, 0, 0, 0.0);
  EXPECT_EQ(compress(compression).k.view().at(0, 0, 0, 0), 1.0); // to even
}

// Every kind gives a mean's result for weights that make it one.
TEST(Compression, LinearAndMlpWithAveragingWeightsAreTheMean) {
  std::mt19937_64 random(test::freshSeed());
  constexpr int64_t kBlock = 6, kColumns = 3;
  Spec spec{.dtype = DType::kF32,
            .queryHeads = 1,
            .kvHeads = 2,
            .qkDim = kColumns,
            .vDim = kColumns,
            .cmpBlock = kBlock,
            .cmpStride = 2};
  OwnedTensor k = drawTensor(random, DType::kF32, 1, 17, 2, kColumns);
  for (int64_t time = 0; time < 17; ++time) // positive sums pass relu unchanged
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t c = 0; c < kColumns; ++c)
        setElement(k, 0, time, head, c, 2 + std::fabs(k.view().at(0, time, head, c)));
  OwnedTensor weights = OwnedTensor::make(DType::kF32, 1, kBlock, kColumns, kColumns);
  OwnedTensor identity = OwnedTensor::make(DType::kF32, 1, kColumns, 1, kColumns);
  for (int64_t row = 0; row < kColumns; ++row)
    for (int64_t c = 0; c < kColumns; ++c) {
      for (int64_t i = 0; i < kBlock; ++i)
        setElement(weights, 0, i, row, c, row == c ? 1.0 / kBlock : 0);
      setElement(identity, 0, row, 0, c, row == c);
    }
  Compression compression{.spec = spec, .k = k.view(), .v = k.view(), .sequences = denseSequences(1, 0, 17)};
  const Compressed mean = compress(compression);
  compression.spec.cmpKind = CmpKind::kLinear;
  compression.phiK.w = compression.phiV.w = weights.view();
  const Compressed linear = compress(compression);
  compression.spec.cmpKind = CmpKind::kMlp;
  compression.spec.mlpHidden = kColumns;
  compression.phiK.w1 = compression.phiV.w1 = weights.view();
  compression.phiK.w2 = compression.phiV.w2 = identity.view();
  const Compressed mlp = compress(compression);
  ASSERT_EQ(mean.k.times, 6);
  for (int64_t block = 0; block < 6; ++block)
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t c = 0; c < kColumns; ++c) {
        const double value = mean.k.view().at(0, block, head, c);
        EXPECT_NEAR(linear.k.view().at(0, block, head, c), value, 2e-6); // 1/6 is not an fp32 number
        EXPECT_NEAR(mlp.v.view().at(0, block, head, c), value, 2e-6);
      }
}

TEST(Compression, TheActivationsAreTheNamedOnes) {
  // One token, one column: x -> act(x * 1) * 1.
  OwnedTensor one = OwnedTensor::make(DType::kF32, 1, 1, 1, 1);
  setElement(one, 0, 0, 0, 0, 1);
  const Spec spec{.dtype = DType::kF32,
                  .qkDim = 1,
                  .vDim = 1,
                  .cmpBlock = 1,
                  .cmpStride = 1,
                  .cmpKind = CmpKind::kMlp,
                  .mlpHidden = 1};
  auto act = [&](Activation activation, double x) {
    Spec chosen = spec;
    chosen.mlpActivation = activation;
    return PhiFunction(chosen, {.w1 = one.view(), .w2 = one.view()}, 1)(std::vector<double>{x}).at(0);
  };
  EXPECT_EQ(act(Activation::kRelu, -2), 0);
  EXPECT_EQ(act(Activation::kRelu, 3), 3);
  EXPECT_TRUE(std::isnan(act(Activation::kRelu, std::nan(""))));
  EXPECT_NEAR(act(Activation::kGelu, 1), 0.8413447460685429, 1e-15); // Phi(1): erf, not its tanh approximation
  EXPECT_NEAR(act(Activation::kGelu, -3), -3 * 0.0013498980316300933, 1e-15);
  EXPECT_NEAR(act(Activation::kSilu, 1), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(act(Activation::kSilu, -2), -2 * 0.11920292202211755, 1e-15);
}

TEST(Compression, RowsOfAPackedBatchReadTheirOwnSequence) {
  std::mt19937_64 random(test::freshSeed());
  const Spec spec{
      .dtype = DType::kF32, .queryHeads = 1, .kvHeads = 1, .qkDim = 2, .vDim = 2, .cmpBlock = 4, .cmpStride = 2};
  DrawnNsa drawn = drawNsa(random, spec, packedLengths({0, 0, 0, 0}, {3, 6, 0, 5}, spec)); // N_c 0, 2, 0, 1
  const Compressed clean = compress(compressionOf(drawn));
  EXPECT_EQ(clean.k.times, 3);
  // A block that reached into the next sequence, or a sequence whose blocks began elsewhere, would turn NaN.
  for (int64_t time = 0; time < 3; ++time)
    fillRow(drawn.kCmp, 0, time, 0, std::nan(""));
  for (int64_t time = 9; time < 14; ++time)
    fillRow(drawn.kCmp, 0, time, 0, std::nan(""));
  const Compressed poisoned = compress(compressionOf(drawn));
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t c = 0; c < 2; ++c) {
      if (row < 2)
        EXPECT_EQ(poisoned.k.view().at(0, row, 0, c), clean.k.view().at(0, row, 0, c));
      else
        EXPECT_TRUE(std::isnan(poisoned.k.view().at(0, row, 0, c)));
    }
}

} // namespace
} // namespace nsa::reference
