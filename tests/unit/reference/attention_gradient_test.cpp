// The gradients of the reference against differences of its forward pass.
#include "tools/reference/gradient/attention_gradient.h"

#include "tests/harness/seed.h"
#include "tests/unit/reference/drawn.h"

#include <cmath>
#include <numeric>

namespace nsa::reference {
namespace {

struct Drawn {
  Spec spec;
  OwnedTensor q, k, v;
  Attention attention;
  std::vector<double> dOut;

  // The sum of which the gradients are taken.
  double loss() const {
    const std::vector<double> out = attend(attention, 1).out;
    return std::inner_product(out.begin(), out.end(), dOut.begin(), 0.0);
  }
};

void draw(Operator op, std::mt19937_64 &random, Drawn &drawn) {
  drawn.spec = drawSpec(random);
  drawn.spec.op = op;
  drawn.spec.dtype = DType::kF32;
  DrawnLengths lengths = drawLengths(random, drawn.spec, 20);
  int64_t keyTimes = lengths.keyTimes;
  if (op == Operator::kCmp) {
    keyTimes = 1;
    for (const Sequence &sequence : lengths.sequences)
      keyTimes = std::max(keyTimes, sequence.blockBegin + drawn.spec.compressedBlocks(sequence.keys));
  }
  const Spec &spec = drawn.spec;
  drawn.q = drawTensor(random, spec.dtype, lengths.batches, lengths.queryTimes, spec.queryHeads, spec.qkDim);
  drawn.k = drawTensor(random, spec.dtype, lengths.batches, keyTimes, spec.kvHeads, spec.qkDim);
  drawn.v = drawTensor(random, spec.dtype, lengths.batches, keyTimes, spec.kvHeads, spec.vDim);
  drawn.attention = {
      .spec = spec, .q = drawn.q.view(), .k = drawn.k.view(), .v = drawn.v.view(), .sequences = lengths.sequences};
  if (op == Operator::kSel) {
    drawn.attention.blockLists = BlockLists::make(rowEnd(lengths.sequences), spec.kvHeads, spec.selCount);
    for (int64_t row = 0; row < rowEnd(lengths.sequences); ++row)
      for (int64_t kvHead = 0; kvHead < spec.kvHeads; ++kvHead)
        drawn.attention.blockLists.at(row, kvHead)[0] = static_cast<int32_t>(random() % 2);
  }
  std::normal_distribution<double> normal;
  drawn.dOut.resize(attend(drawn.attention, 1).out.size());
  for (double &each : drawn.dOut)
    each = normal(random);
}

// By how much the loss grows with an element, from both sides.
double slope(const Drawn &drawn, OwnedTensor &tensor, int64_t batch, int64_t time, int64_t head, int64_t column) {
  constexpr double kStep = 1.0 / 1024;
  const double before = tensor.view().at(batch, time, head, column);
  double loss[2];
  for (const int side : {0, 1}) {
    setElement(tensor, batch, time, head, column, before + (side ? kStep : -kStep));
    loss[side] = drawn.loss();
  }
  const double width = 2 * kStep;
  setElement(tensor, batch, time, head, column, before);
  return (loss[1] - loss[0]) / width;
}

TEST(AttentionGradient, IsTheSlopeOfTheForwardPass) {
  std::mt19937_64 random(test::freshSeed());
  for (const Operator op : {Operator::kDense, Operator::kWindow, Operator::kCmp, Operator::kSel})
    for (int round = 0; round < 10; ++round) {
      Drawn drawn;
      draw(op, random, drawn);
      const Spec &spec = drawn.spec;
      SCOPED_TRACE(std::string(operatorName(op)) + " " + specText(spec));
      const AttentionGradient gradient = differentiate(drawn.attention, attend(drawn.attention, 1), drawn.dOut);
      for (size_t s = 0; s < drawn.attention.sequences.size(); ++s) {
        const Sequence &sequence = drawn.attention.sequences[s];
        if (sequence.queries == 0)
          continue;
        const int64_t query = static_cast<int64_t>(random() % static_cast<uint64_t>(sequence.queries));
        const int64_t head = static_cast<int64_t>(random() % static_cast<uint64_t>(spec.queryHeads));
        const int64_t row = (sequence.firstRow + query) * spec.queryHeads + head;
        EXPECT_NEAR(slope(drawn, drawn.q, sequence.batch, sequence.queryBegin + query, head, 0),
                    gradient.q[row * spec.qkDim], 1e-3);
        const int64_t keys = static_cast<int64_t>(gradient.keys[s].v.size()) / (int64_t{spec.kvHeads} * spec.vDim);
        if (keys == 0)
          continue;
        const int64_t begin = op == Operator::kCmp ? sequence.blockBegin : sequence.keyBegin;
        const int64_t key = static_cast<int64_t>(random() % static_cast<uint64_t>(keys)), kvHead = head / spec.group();
        const int64_t place = key * spec.kvHeads + kvHead;
        const AttentionResult result = attend(drawn.attention, 1);
        const KeyGradient alone =
            differentiateKey(drawn.attention, sequence, key, {result.lse, gradient.delta}, drawn.dOut);
        EXPECT_EQ(alone.attended[kvHead], gradient.keys[s].attended[place]);
        for (int64_t column = 0; column < spec.qkDim; ++column)
          EXPECT_NEAR(alone.k[kvHead * spec.qkDim + column], gradient.keys[s].k[place * spec.qkDim + column], 1e-12);
        for (int64_t column = 0; column < spec.vDim; ++column)
          EXPECT_NEAR(alone.v[kvHead * spec.vDim + column], gradient.keys[s].v[place * spec.vDim + column], 1e-12);
        EXPECT_NEAR(slope(drawn, drawn.k, sequence.keyBatch, begin + key, kvHead, 0),
                    gradient.keys[s].k[place * spec.qkDim], 1e-3);
        EXPECT_NEAR(slope(drawn, drawn.v, sequence.keyBatch, begin + key, kvHead, spec.vDim - 1),
                    gradient.keys[s].v[place * spec.vDim + spec.vDim - 1], 1e-3);
      }
    }
}

} // namespace
} // namespace nsa::reference
