// What holds of every configuration, on drawn ones and on all branches at once. For every device.
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/reference/block_list.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace nsa::test {
namespace {

using T = TensorName;

// The first few of the run's geometries: DrawnGeometries has the same kernels.
constexpr int kPropertyGeometries = 6;

class Properties : public OperatorTest, public ::testing::WithParamInterface<int> {
protected:
  void SetUp() override {
    OperatorTest::SetUp();
    if (IsSkipped() || HasFatalFailure())
      return;
    geometry = drawnGeometries(*session)[static_cast<size_t>(GetParam())];
    random.seed(freshSeed() + static_cast<uint64_t>(GetParam()));
  }

  // A call of a few hundred tokens, at least some of them queries.
  OperatorCase drawCase(Operator op) {
    for (;;) {
      OperatorCase drawn = drawOperatorCase(geometry, op, random, {.maxTokens = 300, .maxWork = 1e7});
      if (std::accumulate(drawn.lengths.q.begin(), drawn.lengths.q.end(), int64_t{0}) > 0)
        return drawn;
    }
  }
  int64_t below(int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); }
  // One that has queries.
  size_t anySequence(const std::vector<reference::Sequence> &sequences) {
    for (;;)
      if (const auto i = static_cast<size_t>(below(static_cast<int64_t>(sequences.size()))); sequences[i].queries > 0)
        return i;
  }

  Geometry geometry;
  std::mt19937_64 random;
};
INSTANTIATE_TEST_SUITE_P(Drawn, Properties, ::testing::Range(0, drawnCases(kPropertyGeometries)));

TEST_P(Properties, NothingOfTheFutureOrOfOthersChangesARow) {
  const OperatorCase shape = drawCase(Operator::kNsa);
  SCOPED_TRACE(shape.text());
  const OperatorInputs inputs = tools::drawInputs(shape.spec, shape.lengths, random());
  const tools::PlanHandle made = plan(shape.spec, geometry.maxima);
  const NamedTensors clean = run(made, inputs, shape.spacing);
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
  for (const double value : {1000.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (int repeat = 0; repeat < 3; ++repeat) {
      const reference::Sequence &sequence = sequences[anySequence(sequences)];
      const int64_t query = below(sequence.queries);
      const OperatorInputs spoilt = spoilAllBut(inputs, sequence, query, value);
      expectSameQuery(shape.spec, clean, run(made, spoilt, shape.spacing), sequence, query);
      ASSERT_FALSE(HasFailure()) << "value " << value;
    }
}

TEST_P(Properties, ExactlyTheAttendedKeysChangeARow) {
  OperatorCase shape = drawCase(Operator::kNsa);
  // Weights of one size, so that none vanishes in rounding, and a compression that loses no token.
  shape.spec.scale = 0.02f;
  if (shape.spec.cmpKind == CmpKind::kMlp)
    shape.spec.cmpKind = CmpKind::kMean;
  SCOPED_TRACE(shape.text());
  const OperatorInputs inputs = tools::drawInputs(shape.spec, shape.lengths, random());
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
  std::vector<Token> tokens;
  for (int i = 0; i < 8; ++i) {
    const size_t sequence = anySequence(sequences);
    tokens.push_back({sequence, below(sequences[sequence].keys)});
  }
  checkInfluence(plan(shape.spec, geometry.maxima), inputs, tokens);
}

// A list is one of a group: what moves one of its heads moves all.
TEST_P(Properties, AllHeadsOfAGroupAttendTheSameBlocks) {
  OperatorCase shape = drawCase(Operator::kNsa);
  Spec &spec = shape.spec;
  spec.branches = kBranchSel;
  spec.scale = 0.02f;
  SCOPED_TRACE(shape.text());
  const OperatorInputs inputs = tools::drawInputs(spec, shape.lengths, random());
  const tools::PlanHandle made = plan(spec, geometry.maxima);
  const NamedTensors before = run(made, inputs);
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
  const reference::BlockLists lists = reference::readBlockLists(
      sequences, tools::listView(spec, before.at(T::kBlockList)), spec.kvHeads, spec.selCount);
  for (int repeat = 0; repeat < 5; ++repeat) {
    const size_t chosen = anySequence(sequences);
    const reference::Sequence &sequence = sequences[chosen];
    const int64_t block = below((sequence.keys - 1) / spec.selBlock + 1);
    OperatorInputs changed = inputs;
    for (int64_t key = block * spec.selBlock; key < std::min(sequence.keys, (block + 1) * spec.selBlock); ++key)
      fill(spec.dtype, timeOf(spec, changed.tensors.at(T::kVSel), sequence.keyBatch, sequence.keyBegin + key), 256);
    const NamedTensors after = run(made, changed);
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < spec.queryHeads; ++head) {
        const std::span<const int32_t> list = lists.at(sequence.firstRow + query, head / spec.group());
        const bool isListed = std::ranges::find(list, block) != list.end();
        const int64_t time = sequence.queryBegin + query;
        ASSERT_EQ(!sameBytes(headOf(spec, after.at(T::kOSel), sequence.batch, time, head),
                             headOf(spec, before.at(T::kOSel), sequence.batch, time, head)),
                  isListed)
            << "block " << block << ", query " << query << ", head " << head;
      }
  }
}

// The rows that `from` has for the sequence, in the place that they have in `to`.
void copyRows(const Spec &spec, T name, tools::HostTensor from, const reference::Sequence &source,
              tools::HostTensor &to, const reference::Sequence &target) {
  const Lead lead = tensorRule(name).lead;
  const int64_t count = lead == Lead::kQueries ? source.queries
                        : lead == Lead::kKeys  ? source.keys
                                               : spec.compressedBlocks(source.keys);
  auto begin = [&](const reference::Sequence &sequence) {
    return lead == Lead::kQueries ? sequence.queryBegin : lead == Lead::kKeys ? sequence.keyBegin : sequence.blockBegin;
  };
  for (int64_t i = 0; i < count; ++i)
    std::ranges::copy(timeOf(spec, from, 0, begin(source) + i), timeOf(spec, to, 0, begin(target) + i).begin());
}

TEST_P(Properties, TheOrderOfABatchChangesNoBit) {
  geometry.spec.layout = Layout::kPacked;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const OperatorCase shape = drawCase(Operator::kNsa);
    SCOPED_TRACE(shape.text());
    const Spec &spec = shape.spec;
    std::vector<size_t> order(shape.lengths.q.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::shuffle(order, random);
    std::ranges::rotate(order, order.begin() + (std::ranges::is_sorted(order) && order.size() > 1));
    tools::SequenceLengths permuted;
    for (const size_t i : order) {
      permuted.q.push_back(shape.lengths.q[i]);
      permuted.k.push_back(shape.lengths.k[i]);
    }
    const OperatorInputs inputs = tools::drawInputs(spec, shape.lengths, random());
    OperatorInputs others = tools::layOut(spec, permuted);
    const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs), places = tools::sequencesOf(others);
    for (const auto &[name, tensor] : inputs.tensors) {
      if (tensor.dtype == DType::kI32)
        continue; // the lengths, which are there
      tools::HostTensor &target = others.tensors[name] = tensor;
      if (tensorRule(name).lead != Lead::kNone)
        for (size_t i = 0; i < order.size(); ++i)
          copyRows(spec, name, tensor, sequences[order[i]], target, places[i]);
    }
    const tools::PlanHandle made = plan(spec, geometry.maxima);
    const NamedTensors before = run(made, inputs), after = run(made, others);
    checkOutputs(inputs, before);
    for (const auto &[name, tensor] : before) {
      tools::HostTensor expected = after.at(name);
      for (size_t i = 0; i < order.size(); ++i)
        copyRows(spec, name, tensor, sequences[order[i]], expected, places[i]);
      EXPECT_EQ(expected.bytes, after.at(name).bytes) << tensorName(name);
    }
  }
}

// Atomic sums or a race would differ now and then.
TEST_F(OperatorTest, RepeatsOfTheWholeForwardGiveTheSameBits) {
  const int repeats = session->isCuda() ? 100 : 10;
  Spec spec = smallSpec(Operator::kNsa, DType::kBf16);
  spec.layout = Layout::kPacked;
  const OperatorInputs inputs = tools::drawInputs(spec, {{150, 40, 190}, {200, 40, 190}}, freshSeed());
  const tools::PlanHandle made = plan(spec, inputs.maxima);
  Result<tools::DeviceOperator> job =
      tools::DeviceOperator::upload(session->accelerator(), inputs, tools::allOutputs(spec.op));
  ASSERT_TRUE(job.isOk()) << job.status().toString();
  NamedTensors first;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    ASSERT_TRUE(job->poisonOutputs().isOk());
    ASSERT_TRUE(job->allocateWorkspace(made.get()).isOk());
    ASSERT_TRUE(job->enqueue(made.get()).isOk());
    nsa_error error{};
    ASSERT_EQ(nsa_plan_status(made.get(), session->accelerator().stream(), &error), NSA_OK) << error.message;
    Result<NamedTensors> outputs = job->download();
    ASSERT_TRUE(outputs.isOk()) << outputs.status().toString();
    if (repeat == 0) {
      checkOutputs(inputs, *outputs);
      first = std::move(*outputs);
      continue;
    }
    for (const auto &[name, tensor] : first)
      ASSERT_EQ(outputs->at(name).bytes, tensor.bytes) << tensorName(name) << " of repeat " << repeat;
  }
}

} // namespace
} // namespace nsa::test
