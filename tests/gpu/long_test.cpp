// Sequences as long as those that NSA is for, on a GPU: some rows of the shapes that peers are measured with, and keys
// of more than 2^31 elements.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"

#include <set>

namespace nsa::test {
namespace {

using T = TensorName;

struct Shape {
  const char *name;
  int32_t queryHeads, kvHeads, qkDim, vDim;
};
const std::vector<Shape> &shapes() {
  static const std::vector<Shape> all = {
      {"nsa192", 64, 4, 192, 128}, {"nsa128", 64, 4, 128, 128}, {"gqa4", 32, 8, 128, 128}, {"mha1", 16, 16, 128, 128}};
  return all;
}

// The parameters have the defaults of the paper: l 32, d 16, l' 64, n 16, a window of 512.
Spec specOf(const Shape &shape) {
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = DType::kBf16;
  spec.queryHeads = shape.queryHeads;
  spec.kvHeads = shape.kvHeads;
  spec.qkDim = shape.qkDim;
  spec.vDim = shape.vDim;
  return spec;
}

// Rows at both ends, around a block's border, and some anywhere.
std::vector<int64_t> sampledRows(int64_t rows, size_t count, std::mt19937_64 &random) {
  std::set<int64_t> sample = {0, rows - 1};
  for (const int64_t row : {int64_t{31}, int64_t{63}, int64_t{64}, rows / 2 - 1, rows / 2})
    if (row < rows)
      sample.insert(row);
  while (sample.size() < std::min(count, static_cast<size_t>(rows)))
    sample.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
  return {sample.begin(), sample.end()};
}

class LongSequences : public OperatorTest, public ::testing::WithParamInterface<Shape> {
protected:
  static void SetUpTestSuite() {
    makeReadyForSuite(shapes(), [](const Shape &shape) {
      return std::pair(specOf(shape), tools::layOut(specOf(shape), {{tokens()}, {tokens()}}).maxima);
    });
  }
  static int64_t tokens() { return maxTokens(65536); }
};
INSTANTIATE_TEST_SUITE_P(Peers, LongSequences, ::testing::ValuesIn(shapes()),
                         [](const auto &info) { return info.param.name; });

TEST_P(LongSequences, SampledRowsMatchTheReference) {
  std::mt19937_64 random(freshSeed());
  const OperatorInputs inputs = tools::drawInputs(specOf(GetParam()), {{tokens()}, {tokens()}}, random());
  checkOutputs(inputs, run(inputs), sampledRows(tokens(), 32, random));
}

class ManyElements : public OperatorTest {};

// One K and one V of 2^31 elements and more for all branches, and queries at their end.
TEST_F(ManyElements, KeysOfMoreThanTwoToThe31) {
  if (maxTokens(1 << 21) < (1 << 21))
    GTEST_SKIP() << kTooManyTokens;
  std::mt19937_64 random(freshSeed());
  constexpr int64_t kTokens = (int64_t{1} << 20) + 4099, kQueries = 64;
  const Spec spec = specOf({"many", 16, 16, 128, 128});
  static_assert(kTokens * 16 * 128 > int64_t{1} << 31);
  OperatorInputs inputs = tools::layOut(spec, {{kQueries}, {kTokens}});
  // Of the whole forward's own tensors each branch would have a K and a V.
  Spec dense = spec;
  dense.op = Operator::kDense;
  OperatorInputs shared = tools::drawInputs(dense, {{kQueries}, {kTokens}}, random());
  inputs.tensors[T::kQ] = std::move(shared.tensors.at(T::kQ));
  inputs.tensors[T::kK] = std::move(shared.tensors.at(T::kKWin));
  inputs.tensors[T::kV] = std::move(shared.tensors.at(T::kVWin));
  inputs.tensors[T::kGates] = tools::drawInputs(spec, {{kQueries}, {kQueries}}, random()).tensors.at(T::kGates);
  const Result<NamedTensors> outputs = tryRun(plan(spec, inputs.maxima), inputs);
  if (!outputs && outputs.status().code() == ErrorCode::kOutOfMemory)
    GTEST_SKIP() << outputs.status().toString();
  ASSERT_TRUE(outputs.isOk()) << outputs.status().toString();
  checkOutputs(inputs, *outputs, sampledRows(kQueries, 8, random));
}

} // namespace
} // namespace nsa::test
