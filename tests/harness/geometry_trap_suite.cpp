// Traps of shapes (docs/specification.md 13): every number of heads a group, lengths that are multiples of nothing,
// sequences shorter than a compressed block, empty sequences of a packed batch. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <cmath>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class GeometryTraps : public OperatorTestPerType {};
NSA_INSTANTIATE_PER_TYPE(GeometryTraps);

struct GroupShape {
  int32_t group;
  DType dtype;
};
const std::vector<GroupShape> &groupShapes() {
  static const std::vector<GroupShape> shapes = [] {
    std::vector<GroupShape> all;
    for (const int32_t group : {1, 2, 3, 4, 6, 8, 16, 32, 64, 128})
      for (const DType dtype : servedTypes())
        if (group == servedGroup(group))
          all.push_back({group, dtype});
    return all;
  }();
  return shapes;
}

class GroupTraps : public OperatorTest, public ::testing::WithParamInterface<GroupShape> {
protected:
  static void SetUpTestSuite() {
    makeReadyForSuite(groupShapes(), [](const GroupShape &shape) {
      return std::pair(specOf(shape), tools::layOut(specOf(shape), lengths()).maxima);
    });
  }
  static tools::SequenceLengths lengths() { return {{61}, {135}}; }
  static Spec specOf(const GroupShape &shape) {
    const auto [group, dtype] = shape;
    Spec spec = smallSpec(Operator::kNsa, dtype);
    spec.kvHeads = group < 64 ? 2 : 1;
    spec.queryHeads = spec.kvHeads * group;
    spec.qkDim = 24;
    spec.vDim = 16;
    return spec;
  }
};
INSTANTIATE_TEST_SUITE_P(Heads, GroupTraps, ::testing::ValuesIn(groupShapes()), [](const auto &info) {
  return std::to_string(info.param.group) + "_" + std::string(dtypeName(info.param.dtype));
});

TEST_P(GroupTraps, HeadsOfAGroup) {
  std::mt19937_64 random(freshSeed());
  const OperatorCase shape{.name = "group", .spec = specOf(GetParam()), .lengths = lengths()};
  check(shape, random);
}

// One token around multiples of d, l, l' and of tiles.
TEST_P(GeometryTraps, LengthsThatAreMultiplesOfNothing) {
  std::mt19937_64 random(freshSeed());
  const Spec spec = smallSpec(Operator::kNsa, dtype());
  Maxima maxima{.batch = 1, .tokensQ = 200, .seqlenQ = 200, .seqlenK = 200};
  const tools::PlanHandle made = plan(spec, maxima);
  for (const int64_t length : {15, 17, 23, 25, 31, 33, 63, 65, 95, 97, 127, 129, 143, 145, 191, 193, 199})
    for (const int64_t queries : {length, std::min<int64_t>(length, 10)}) {
      SCOPED_TRACE(std::to_string(queries) + " queries of " + std::to_string(length));
      const OperatorInputs inputs = tools::drawInputs(spec, {{queries}, {length}}, random());
      checkOutputs(inputs, run(made, inputs));
    }
}

TEST_P(GeometryTraps, ShorterThanACompressedBlock) {
  std::mt19937_64 random(freshSeed());
  for (const int32_t block : {16, 48}) { // the longer one is longer than a selection block
    Spec spec = smallSpec(Operator::kNsa, dtype());
    spec.cmpBlock = block;
    Maxima maxima{.batch = 1, .tokensQ = 200, .seqlenQ = 200, .seqlenK = 200};
    const tools::PlanHandle made = plan(spec, maxima);
    for (const int64_t length : {1, 2, 7, 8, 9, block - 1, block, block + 1}) {
      SCOPED_TRACE(std::to_string(length) + " tokens, blocks of " + std::to_string(block));
      const OperatorInputs inputs = tools::drawInputs(spec, {{length}, {length}}, random());
      const NamedTensors outputs = run(made, inputs);
      checkOutputs(inputs, outputs);
      // Zeros and -inf, exactly, wherever no block is visible.
      for (int64_t query = 0; query < std::min<int64_t>(length, block - 1); ++query)
        for (int64_t head = 0; head < spec.queryHeads; ++head) {
          ASSERT_EQ(elementOf(outputs.at(T::kLseCmp), query * spec.queryHeads + head),
                    -std::numeric_limits<double>::infinity());
          for (int64_t column = 0; column < spec.vDim; ++column)
            ASSERT_EQ(elementOf(outputs.at(T::kOCmp), (query * spec.queryHeads + head) * spec.vDim + column), 0);
        }
    }
  }
}

// The same of the operators by themselves, which then have no compressed rows at all.
TEST_P(GeometryTraps, OperatorsWithoutCompressedRows) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const Operator op : {Operator::kCompress, Operator::kCmp, Operator::kSelect}) {
      SCOPED_TRACE(std::string(operatorName(op)) + " " + std::string(layoutName(layout)));
      Spec spec = smallSpec(op, dtype());
      spec.layout = layout;
      const OperatorInputs inputs = tools::drawInputs(spec, {{11, 11}, {11, 11}}, freshSeed());
      ASSERT_EQ(inputs.extents.blocks, 0);
      const NamedTensors outputs = run(inputs);
      if (op == Operator::kCompress)
        continue; // nothing to compare: it ran and said so
      checkOutputs(inputs, outputs);
      if (op == Operator::kCmp)
        for (int64_t i = 0; i < outputs.at(T::kLse).elements(); ++i)
          ASSERT_EQ(elementOf(outputs.at(T::kLse), i), -std::numeric_limits<double>::infinity());
    }
}

// In front, between others, at the end and all; with a prefix and without queries.
TEST_P(GeometryTraps, EmptySequencesOfAPackedBatch) {
  std::mt19937_64 random(freshSeed());
  Spec spec = smallSpec(Operator::kNsa, dtype());
  spec.layout = Layout::kPacked;
  const tools::SequenceLengths batches[] = {{{0, 60, 50}, {0, 60, 110}},
                                            {{60, 0, 0, 50}, {90, 0, 0, 50}},
                                            {{70, 40, 0}, {70, 40, 0}},
                                            {{0, 70, 0}, {40, 120, 0}},
                                            {{0, 1, 0}, {0, 1, 0}}};
  Maxima maxima{.batch = 4, .tokensQ = 200, .seqlenQ = 120, .seqlenK = 120};
  const tools::PlanHandle made = plan(spec, maxima);
  for (const tools::SequenceLengths &lengths : batches) {
    const OperatorCase shape{.name = "empty", .spec = spec, .lengths = lengths};
    SCOPED_TRACE(shape.text());
    const OperatorInputs inputs = tools::drawInputs(spec, lengths, random());
    checkOutputs(inputs, run(made, inputs));
  }
  const OperatorInputs nothing = tools::drawInputs(spec, {{0, 0}, {0, 0}}, 1);
  EXPECT_TRUE(run(made, nothing).at(T::kOut).bytes.empty());
}

} // namespace
} // namespace nsa::test
