// Queries of a packed batch in chunks: what a chunk has of a sequence does not depend on the sequences in front of it.
// For every device, but only the CPU has several chunks of so few queries.
#include "runtime/engine/graph/workspace.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/forward_pass.h"

#include <algorithm>

namespace nsa::test {
namespace {

using T = TensorName;

constexpr int64_t kLongest = 470;

// The bytes of a tensor's rows for a sequence, which begins at offset 0 in the keys as in the queries.
std::span<std::byte> rowsOf(const Spec &spec, T name, tools::HostTensor &tensor, const reference::Sequence &sequence) {
  const Lead lead = tensorRule(name).lead;
  const int64_t begin = lead == Lead::kBlocks ? sequence.blockBegin : sequence.queryBegin;
  const int64_t count = lead == Lead::kBlocks ? spec.compressedBlocks(sequence.keys) : sequence.queries;
  const auto row = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
  return std::span(tensor.bytes).subspan(static_cast<size_t>(begin) * row, static_cast<size_t>(count) * row);
}

Maxima maximaOfAll() { return {.batch = 3, .tokensQ = 2 * kLongest, .seqlenQ = kLongest, .seqlenK = kLongest}; }

// A batch of beginnings of one sequence. What is saved of the sequence is right for its beginnings.
OperatorInputs beginningsOf(const OperatorInputs &whole, const std::vector<int64_t> &lengths) {
  OperatorInputs inputs = tools::layOut(whole.spec, {lengths, lengths});
  inputs.maxima = maximaOfAll();
  const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs), source = tools::sequencesOf(whole);
  for (const auto &[name, tensor] : whole.tensors) {
    if (inputs.tensors.contains(name))
      continue; // the lengths
    tools::HostTensor &target = inputs.tensors[name] = tensor;
    if (tensorRule(name).lead == Lead::kNone)
      continue;
    tools::HostTensor from = tensor;
    const std::span<std::byte> rows = rowsOf(whole.spec, name, from, source[0]);
    const auto row = static_cast<int64_t>(tensor.bytes.size()) / tensor.shape[0];
    const reference::Sequence &last = sequences.back();
    target.shape[0] = tensorRule(name).lead == Lead::kBlocks ? last.blockBegin + whole.spec.compressedBlocks(last.keys)
                                                             : last.queryBegin + last.queries;
    target.bytes.resize(static_cast<size_t>(target.shape[0] * row));
    for (const reference::Sequence &sequence : sequences) {
      const std::span<std::byte> place = rowsOf(whole.spec, name, target, sequence);
      std::ranges::copy(rows.first(place.size()), place.begin());
    }
  }
  return inputs;
}

class PackedChunks : public OperatorTest {
protected:
  static Spec spec(Operator op, int32_t group) {
    Spec spec = smallSpec(op, servedTypes().back());
    spec.layout = Layout::kPacked;
    spec.queryHeads = 32;
    spec.kvHeads = 32 / group;
    spec.vDim = 256; // the CPU's memory holds a fraction of the queries
    spec.window = 40;
    return spec;
  }

  void expectSameBitsInEachBatch(const OperatorInputs &whole) {
    constexpr int64_t length = 401;
    if (!session->isCuda()) {
      ASSERT_LT(WorkspaceLayout(whole.spec, maximaOfAll(), 0, /*isGpu=*/false).chunk, length) << "one chunk has all";
    }
    const OperatorInputs alone = beginningsOf(whole, {length});
    const tools::PlanHandle made = plan(whole.spec, alone.maxima);
    NamedTensors expected = run(made, alone);
    for (const std::vector<int64_t> &lengths :
         {std::vector<int64_t>{kLongest, length}, {length, kLongest}, {97, 0, length}}) {
      SCOPED_TRACE(testing::PrintToString(lengths));
      const OperatorInputs inputs = beginningsOf(whole, lengths);
      const auto at = static_cast<size_t>(std::ranges::find(lengths, length) - lengths.begin());
      NamedTensors outputs = run(made, inputs);
      for (auto &[name, tensor] : expected)
        if (tensorRule(name).lead != Lead::kNone) // the others are weights of phi
          EXPECT_TRUE(sameBytes(rowsOf(whole.spec, name, tensor, tools::sequencesOf(alone)[0]),
                                rowsOf(whole.spec, name, outputs.at(name), tools::sequencesOf(inputs)[at])))
              << tensorName(name);
    }
  }
};

TEST_F(PackedChunks, OfTheForwardPassDoNotDependOnNeighbours) {
  for (const int32_t group : {1, 4}) {
    SCOPED_TRACE(group);
    expectSameBitsInEachBatch(tools::drawInputs(spec(Operator::kNsa, group), {{kLongest}, {kLongest}}, freshSeed()));
  }
}

// A call binds the outputs of the branches, or the chunks compute them again.
TEST_F(PackedChunks, OfGradientsDoNotDependOnNeighbours) {
  for (const int32_t group : {1, 4, 8}) { // small groups have slots
    SCOPED_TRACE(group);
    OperatorInputs whole = tools::drawInputs(spec(Operator::kNsaBwd, group), {{kLongest}, {kLongest}}, freshSeed());
    expectSameBitsInEachBatch(whole);
    for (const T name : {T::kOCmp, T::kOSel, T::kOWin})
      whole.tensors.erase(name);
    expectSameBitsInEachBatch(whole);
  }
}

} // namespace
} // namespace nsa::test
