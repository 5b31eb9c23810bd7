// The gradients of compression against differences of phi.
#include "tools/reference/gradient/compression_gradient.h"

#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"

#include <cmath>

namespace nsa::reference {
namespace {

// One side, K or V, of a drawn problem.
struct Side {
  const Compression &compression;
  OwnedTensor &raw;
  DrawnPhi &drawn;
  OwnedTensor dRows;
  int64_t columns;
  bool ofKeys;

  // The sum of which the gradients are taken, with rows that are not rounded.
  double loss() const {
    const Spec &spec = compression.spec;
    const PhiFunction function(spec, drawn.phi(spec), columns);
    const TensorView view = raw.view(), gradient = dRows.view();
    double sum = 0;
    for (const Sequence &sequence : compression.sequences)
      for (int64_t block = 0; block < spec.compressedBlocks(sequence.keys); ++block)
        for (int64_t head = 0; head < spec.kvHeads; ++head) {
          std::vector<double> tokens;
          for (int64_t i = 0; i < spec.cmpBlock * columns; ++i)
            tokens.push_back(view.at(sequence.keyBatch, sequence.keyBegin + block * spec.cmpStride + i / columns, head,
                                     i % columns));
          const std::vector<double> row = function(tokens);
          for (int64_t column = 0; column < columns; ++column)
            sum += row[column] * gradient.at(sequence.keyBatch, sequence.blockBegin + block, head, column);
        }
    return sum;
  }
};

// Compares the slope of the loss along one element with its gradient. Counts the comparisons: where a relu turns
// within the step, there is nothing to compare.
void expectSlope(const Side &side, OwnedTensor &tensor, std::array<int64_t, 4> at, double gradient, int &compared) {
  constexpr double kStep = 1.0 / 65536;
  const auto [batch, time, head, column] = at;
  const auto value = [&] { return tensor.view().at(batch, time, head, column); };
  const double before = value(), loss = side.loss();
  double slopes[2];
  for (const int i : {0, 1}) {
    setElement(tensor, batch, time, head, column, before + (i ? kStep : -kStep));
    slopes[i] = (side.loss() - loss) / (value() - before);
  }
  setElement(tensor, batch, time, head, column, before);
  if (std::abs(slopes[1] - slopes[0]) > 1e-3 * (1 + std::abs(gradient)))
    return;
  ++compared;
  EXPECT_NEAR((slopes[0] + slopes[1]) / 2, gradient, 1e-3 * (1 + std::abs(gradient)));
}

class DrawnCompression {
public:
  explicit DrawnCompression(std::mt19937_64 &random) {
    Spec spec = drawSpec(random);
    spec.dtype = DType::kF32;
    nsa = drawNsa(random, spec, drawLengths(random, spec, 40));
    const Nsa all = nsa.nsa();
    compression = {
        .spec = spec, .k = all.kCmp, .v = all.vCmp, .phiK = all.phiK, .phiV = all.phiV, .sequences = all.sequences};
    int64_t times = 1;
    for (const Sequence &sequence : compression.sequences)
      times = std::max(times, sequence.blockBegin + spec.compressedBlocks(sequence.keys));
    const auto rows = [&](int64_t columns) {
      return drawTensor(random, DType::kF32, nsa.lengths.batches, times, spec.kvHeads, columns);
    };
    sides.push_back({compression, nsa.kCmp, nsa.phiK, rows(spec.qkDim), spec.qkDim, true});
    sides.push_back({compression, nsa.vCmp, nsa.phiV, rows(spec.vDim), spec.vDim, false});
  }

  DrawnNsa nsa;
  Compression compression;
  std::vector<Side> sides;
};

TEST(CompressionGradient, IsTheSlopeOfPhi) {
  std::mt19937_64 random(test::freshSeed());
  int compared = 0;
  std::array<int, 3> kinds = {};
  for (int round = 0; round < 120; ++round) {
    DrawnCompression drawn(random);
    const Spec &spec = drawn.compression.spec;
    SCOPED_TRACE(specText(spec));
    const CompressionGradient gradient =
        differentiate(drawn.compression, drawn.sides[0].dRows.view(), drawn.sides[1].dRows.view());
    for (Side &side : drawn.sides) {
      const CompressedGradient &own = side.ofKeys ? gradient.k : gradient.v;
      const auto below = [&](int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); };
      const int64_t column = below(side.columns);
      const std::vector<Sequence> keys = keyRows(drawn.compression.sequences);
      for (const Sequence &sequence : keys) {
        if (sequence.queries == 0)
          continue;
        const int64_t token = below(sequence.queries), head = below(spec.kvHeads);
        const int64_t place = (sequence.firstRow + token) * spec.kvHeads + head;
        const double expected = own.tokens[place * side.columns + column];
        expectSlope(side, side.raw, {sequence.batch, sequence.queryBegin + token, head, column}, expected, compared);
        if (!own.covered[place])
          EXPECT_EQ(expected, 0);
      }
      if (spec.cmpKind == CmpKind::kMean) {
        EXPECT_TRUE(own.phi.pe.empty() && own.phi.w.empty() && own.phi.w2.empty());
        ++kinds[0];
        continue;
      }
      const int64_t i = below(spec.cmpBlock), x = below(side.columns);
      const bool isMlp = spec.cmpKind == CmpKind::kMlp;
      const int64_t width = isMlp ? spec.mlpHidden : side.columns, y = below(width);
      DrawnPhi &phi = side.drawn;
      if (phi.hasPe)
        expectSlope(side, phi.pe, {0, i, 0, x}, own.phi.pe[i * side.columns + x], compared);
      expectSlope(side, isMlp ? phi.w1 : phi.w, {0, i, x, y}, own.phi.w[(i * side.columns + x) * width + y], compared);
      if (phi.hasBias)
        expectSlope(side, isMlp ? phi.b1 : phi.b, {0, 0, 0, y}, own.phi.b[y], compared);
      ++kinds[isMlp ? 2 : 1];
      if (!isMlp)
        continue;
      expectSlope(side, phi.w2, {0, y, 0, column}, own.phi.w2[y * side.columns + column], compared);
      if (phi.hasBias)
        expectSlope(side, phi.b2, {0, 0, 0, column}, own.phi.b2[column], compared);
    }
  }
  EXPECT_GT(compared, 500);
  for (const int count : kinds)
    EXPECT_GT(count, 0);
}

TEST(CompressionGradient, AReluThatIsZeroHasNoSlope) {
  const OwnedTensor zero = OwnedTensor::make(DType::kF32, 1, 1, 1, 1);
  OwnedTensor one = OwnedTensor::make(DType::kF32, 1, 1, 1, 1);
  setElement(one, 0, 0, 0, 0, 1);
  Spec spec{.dtype = DType::kF32, .kvHeads = 1, .qkDim = 1, .vDim = 1, .cmpBlock = 1, .cmpStride = 1};
  spec.cmpKind = CmpKind::kMlp;
  spec.mlpHidden = 1;
  const Phi phi{.w1 = one.view(), .w2 = one.view()};
  const Compression compression{
      .spec = spec, .k = zero.view(), .v = one.view(), .phiK = phi, .phiV = phi, .sequences = denseSequences(1, 0, 1)};
  const CompressionGradient gradient = differentiate(compression, one.view(), one.view());
  EXPECT_EQ(gradient.k.tokens, std::vector<double>{0});
  EXPECT_EQ(gradient.v.tokens, std::vector<double>{1});
  EXPECT_EQ(gradient.k.phi.b2, std::vector<double>{1});
}

TEST(CompressionGradient, ABlockAtTheKinkOfReluIsFound) {
  OwnedTensor ones = OwnedTensor::make(DType::kF32, 1, 2, 1, 1), tokens = ones,
              weights = OwnedTensor::make(DType::kF32, 1, 2, 1, 1);
  for (const int64_t i : {0, 1}) {
    setElement(ones, 0, i, 0, 0, 1);
    setElement(weights, 0, i, 0, 0, 1);
  }
  Spec spec{.dtype = DType::kF32, .kvHeads = 1, .qkDim = 1, .vDim = 1, .cmpBlock = 2, .cmpStride = 2};
  spec.cmpKind = CmpKind::kMlp;
  spec.mlpHidden = 1;
  const auto isNear = [&](double first, double second, bool ofKeys) {
    setElement(tokens, 0, 0, 0, 0, first);
    setElement(tokens, 0, 1, 0, 0, second);
    const Phi phi{.w1 = weights.view(), .w2 = ones.view()};
    const NearKink found = findNearKink({.spec = spec,
                                         .k = ofKeys ? tokens.view() : ones.view(),
                                         .v = ofKeys ? ones.view() : tokens.view(),
                                         .phiK = phi,
                                         .phiV = phi,
                                         .sequences = denseSequences(1, 0, 2)});
    EXPECT_TRUE((ofKeys ? found.v : found.k).empty());
    return (ofKeys ? found.k : found.v) == std::set<int64_t>{0};
  };
  for (const bool ofKeys : {true, false}) {
    EXPECT_TRUE(isNear(1, -1, ofKeys));
    EXPECT_TRUE(isNear(-1, 1 - 0x1p-23, ofKeys));
    EXPECT_FALSE(isNear(-1, 1 - 0x1p-10, ofKeys));
    EXPECT_FALSE(isNear(0, 0, ofKeys)); // sums of zeros are exact
  }
  spec.mlpActivation = Activation::kSilu;
  EXPECT_FALSE(isNear(1, -1, true));
}

} // namespace
} // namespace nsa::reference
