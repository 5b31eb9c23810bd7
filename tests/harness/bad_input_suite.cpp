// Input that breaks a rule, for the operators of the forward pass: what the host can see is refused by name, what only
// a kernel sees is reported and touches nothing else. For every device.
#include "tests/harness/broken_lists.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class BadInput : public OperatorTestPerType {};
NSA_INSTANTIATE_PER_TYPE(BadInput);

TEST_P(BadInput, MoreForcedBlocksThanPlacesAreRefused) {
  for (const Operator op : {Operator::kSelect, Operator::kNsa}) {
    Spec spec = smallSpec(op, dtype());
    spec.initBlocks = 2;
    spec.localBlocks = 4;
    spec.selCount = 5;
    const Result<tools::PlanHandle> refused =
        tools::createPlan(session->engine(), spec, {1, 100, 100, 100}, session->accelerator().stream());
    ASSERT_FALSE(refused.isOk());
    const Status status = refused.status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, "sel_count");
    EXPECT_EQ(status.error().value, "5");
    EXPECT_NE(status.error().rule.find("init_blocks"), std::string::npos) << status.error().rule;
  }
}

// Every way to break the lists' rule: the query attends nothing, its neighbours what they should, and the error says
// where. There is no checked mode to switch on or off: the kernels look through each list they walk.
TEST_P(BadInput, MalformedListsAttendNothingAndAreReported) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    Spec spec = smallSpec(Operator::kSel, dtype());
    spec.layout = layout;
    OperatorInputs inputs = tools::drawInputs(spec, {{60, 60}, {125, 125}}, freshSeed()); // blocks 0 .. 7
    for (int32_t i = 0; int32_t &block : integers(inputs.tensors.at(T::kBlockList)))
      block = i++ % spec.selCount;
    const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
    const NamedTensors clean = run(inputs);
    constexpr int64_t kQuery = 31, kHead = 1;
    const reference::Sequence &sequence = sequences[1];
    for (const auto &[name, damage] : brokenLists()) {
      SCOPED_TRACE(std::string(name) + " " + std::string(layoutName(layout)));
      OperatorInputs bad = inputs;
      const std::span<std::byte> bytes =
          headOf(spec, bad.tensors.at(T::kBlockList), sequence.batch, sequence.queryBegin + kQuery, kHead);
      damage({reinterpret_cast<int32_t *>(bytes.data()), static_cast<size_t>(spec.selCount)});
      const Outcome outcome = runAnyway(bad);
      ASSERT_EQ(outcome.status.code(), ErrorCode::kDeviceError) << outcome.status.toString();
      const std::string text = outcome.status.toString();
      EXPECT_NE(text.find("block_list"), std::string::npos) << text;
      // The host can read what a CPU kernel refused: the entry and its value. A GPU names the sequence.
      const std::string place = layout == Layout::kPacked ? "block_list[91, 1, " : "block_list[1, 31, 1, ";
      EXPECT_NE(text.find(session->isCuda() ? "sequence 1" : place), std::string::npos) << text;

      for (size_t i = 0; i < sequences.size(); ++i)
        for (int64_t query = 0; query < sequences[i].queries; ++query)
          if (i != 1 || query != kQuery)
            expectSameQuery(spec, clean, outcome.outputs, sequences[i], query);
      const int64_t time = sequence.queryBegin + kQuery;
      EXPECT_EQ(elementOf(outcome.outputs.at(T::kReads), (sequence.batch * 60 + time) * spec.kvHeads + kHead), 0);
      for (int64_t head = 0; head < spec.queryHeads; ++head) {
        const bool isBad = head / spec.group() == kHead;
        for (const T output : {T::kOut, T::kLse}) {
          const std::span<const std::byte> row = headOf(spec, outcome.outputs.at(output), sequence.batch, time, head);
          std::vector<std::byte> empty(row.size());
          fill(output == T::kLse ? DType::kF32 : spec.dtype, empty,
               output == T::kLse ? -std::numeric_limits<double>::infinity() : 0);
          EXPECT_EQ(sameBytes(row, empty), isBad) << tensorName(output) << " of head " << head;
        }
      }
      ASSERT_FALSE(HasFailure());
    }
  }
}

// What the kernel walked is what it counts: one entry more or less is seen.
TEST_P(BadInput, ACorruptedListEntryChangesReads) {
  std::mt19937_64 random(freshSeed());
  const Spec spec = smallSpec(Operator::kSel, dtype());
  for (int repeat = 0; repeat < 12; ++repeat) {
    OperatorInputs inputs = tools::drawInputs(spec, {{70}, {170}}, random());
    const NamedTensors before = run(inputs);
    checkOutputs(inputs, before);
    const auto query = static_cast<int64_t>(random() % 70), head = static_cast<int64_t>(random() % 2);
    const int64_t position = 100 + query;
    const std::span<std::byte> bytes = headOf(spec, inputs.tensors.at(T::kBlockList), 0, query, head);
    const std::span<int32_t> list(reinterpret_cast<int32_t *>(bytes.data()), static_cast<size_t>(spec.selCount));
    // The last block, which lists drawn here have, and behind which there may be blocks of the future.
    auto last = std::ranges::find(list, -1);
    --last;
    const int64_t lost = std::min<int64_t>(spec.selBlock, position + 1 - *last * spec.selBlock);
    const auto later = static_cast<int32_t>(position / spec.selBlock + 1);
    *last = repeat % 2 && later <= 169 / spec.selBlock ? later : -1;
    const NamedTensors after = run(inputs);
    checkOutputs(inputs, after);
    for (int64_t i = 0; i < after.at(T::kReads).elements(); ++i)
      ASSERT_EQ(elementOf(after.at(T::kReads), i),
                elementOf(before.at(T::kReads), i) - (i == query * spec.kvHeads + head ? lost : 0))
          << "list " << i << ", changed " << query << " of kv head " << head;
  }
}

// Lengths on the device that fall, are negative, or end behind the rows, in every operator that reads them. The lengths
// of a cache have tests of their own (bad_decode_suite.cpp).
TEST_P(BadInput, BrokenLengthsAreReportedByEveryOperator) {
  const tools::SequenceLengths lengths{{60, 0, 40}, {90, 20, 130}};
  std::vector<Spec> specs;
  for (const OperatorDef &def : publicOperators())
    if (readsLengths(def.op) && !def.hasCache) {
      specs.push_back(smallSpec(def.op, dtype()));
      specs.back().layout = Layout::kPacked;
    }
  makeReady(specs, lengths);
  for (const Spec &spec : specs) {
    const OperatorInputs inputs = tools::drawInputs(spec, lengths, freshSeed());
    const NamedTensors clean = run(inputs);
    for (const T name : {T::kCuSeqlensQ, T::kCuSeqlensK}) {
      OperatorInputs bad = inputs;
      const std::span<int32_t> offsets = integers(bad.tensors.at(name));
      const int32_t begin = offsets[2], rows = offsets[3];
      // Compressed rows are counted by other lengths, and the rows of `rotate` by those of the queries.
      const bool hasRows = std::ranges::any_of(operandsOf(spec.op), [&](const Operand &operand) {
        return tensorRule(operand.name).lead == (name == T::kCuSeqlensQ ? Lead::kQueries : Lead::kKeys);
      });
      // The last one's end: no other sequence gets its rows.
      for (const int32_t end :
           {begin - 1, -1, std::numeric_limits<int32_t>::min(), rows + 1, std::numeric_limits<int32_t>::max()}) {
        if (end > begin && !hasRows)
          continue;
        SCOPED_TRACE(std::string(operatorName(spec.op)) + ", " + std::string(tensorName(name)) + " ends with " +
                     std::to_string(end));
        offsets[3] = end;
        const Outcome outcome = runAnyway(bad);
        ASSERT_FALSE(outcome.status.isOk());
        const std::string text = outcome.status.toString();
        EXPECT_NE(text.find(tensorName(name)), std::string::npos) << text;
        EXPECT_NE(text.find(session->isCuda() ? "sequence 2" : "[3]"), std::string::npos) << text;
        // Rows of the malformed sequence were not written: they hold what stood there, poison.
        const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
        for (const auto &[output, tensor] : outcome.outputs)
          if (tensorRule(output).lead == Lead::kQueries)
            for (int64_t head = 0; head < tensor.shape[1]; ++head) {
              const std::span<const std::byte> row = headOf(spec, tensor, 0, sequences[2].queryBegin, head);
              EXPECT_TRUE(std::ranges::all_of(row, [&](std::byte byte) {
                return byte == std::byte{tools::poisonOf(tensor.dtype)};
              })) << tensorName(output);
            }
        // On a GPU the first sequence is served as before; the host refuses the whole call.
        if (session->isCuda() && definitionOf(spec.op).hasQueries())
          expectSameQuery(spec, clean, outcome.outputs, sequences[0], 59);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

// Offsets of keys that are too great or, where keys are blocks, split one. They are looked at after the lengths.
TEST_P(BadInput, BrokenKeyOffsetsAreReported) {
  constexpr int32_t kFar = 1 << 30;
  const tools::SequenceLengths lengths{{60, 60, 60}, {60, 60, 60}};
  for (const std::string &variant : testedVariants())
    for (const auto &[op, layout] : {std::pair{Operator::kDense, Layout::kDense},
                                     {Operator::kDense, Layout::kPacked},
                                     {Operator::kWindow, Layout::kDense},
                                     {Operator::kCmp, Layout::kDense},
                                     {Operator::kCmp, Layout::kPacked}}) {
      useVariant(variant);
      Spec spec = smallSpec(op, dtype());
      spec.layout = layout;
      OperatorInputs inputs = tools::drawInputs(spec, lengths, freshSeed());
      bindKeyOffsets(inputs, {-16, 0, 32});
      const NamedTensors clean = run(inputs);
      checkOutputs(inputs, clean);
      for (const int32_t offset : {kFar + spec.cmpStride, -kFar - spec.cmpStride, std::numeric_limits<int32_t>::max(),
                                   std::numeric_limits<int32_t>::min(), 4, -4}) {
        const bool isFar = offset < -kFar || offset > kFar;
        if (!isFar && op != Operator::kCmp)
          continue; // tokens begin anywhere
        SCOPED_TRACE(std::string(operatorName(op)) + " by " + variant + " " + std::string(layoutName(layout)) + ", " +
                     std::to_string(offset));
        OperatorInputs bad = inputs;
        bindKeyOffsets(bad, {-16, offset, 32});
        const Outcome outcome = runAnyway(bad);
        ASSERT_FALSE(outcome.status.isOk());
        const std::string text = outcome.status.toString();
        EXPECT_NE(text.find("k_offset"), std::string::npos) << text;
        EXPECT_NE(text.find(session->isCuda() ? "sequence 1" : "[1]"), std::string::npos) << text;
        EXPECT_NE(text.find(isFar ? "2^30" : "cmp_stride"), std::string::npos) << text;
        const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
        for (const auto &[output, tensor] : outcome.outputs)
          for (int64_t head = 0; head < tensor.shape[layout == Layout::kPacked ? 1 : 2]; ++head) {
            const std::span<const std::byte> row =
                headOf(spec, tensor, sequences[1].batch, sequences[1].queryBegin + 31, head);
            EXPECT_TRUE(std::ranges::all_of(row, [&](std::byte byte) {
              return byte == std::byte{tools::poisonOf(tensor.dtype)};
            })) << tensorName(output);
          }
        if (session->isCuda())
          for (const size_t other : {0, 2})
            expectSameQuery(spec, clean, outcome.outputs, sequences[other], 59);
        ASSERT_FALSE(HasFailure());
      }
    }
}

// A gate of NaN makes NaN of its row and head, and of no other; of all heads of the group where gates are a group's.
TEST_P(BadInput, ANanGateReachesItsOwnRowAndHeadOnly) {
  std::mt19937_64 random(freshSeed());
  const tools::SequenceLengths lengths{{60, 60}, {60, 60}};
  std::vector<Spec> specs;
  for (const Operator op : {Operator::kCombine, Operator::kNsa})
    for (const Gate gate : {Gate::kValue, Gate::kSigmoid, Gate::kSoftmax})
      for (const bool perGroup : {false, true}) {
        specs.push_back(smallSpec(op, dtype()));
        specs.back().gate = gate;
        specs.back().gatePerGroup = perGroup;
      }
  makeReady(specs, lengths);
  for (const Spec &spec : specs) {
    OperatorInputs inputs = tools::drawInputs(spec, lengths, random());
    const tools::PlanHandle made = plan(spec, inputs.maxima);
    const NamedTensors clean = run(made, inputs);
    const bool perGroup = spec.gatePerGroup;
    const int64_t gateHeads = perGroup ? spec.kvHeads : spec.queryHeads;
    for (int64_t branch = 0; branch < 3; ++branch) {
      SCOPED_TRACE(std::string(operatorName(spec.op)) + " " + std::string(gateName(spec.gate)) + ", branch " +
                   std::to_string(branch) + (perGroup ? " of a group" : ""));
      const auto query = static_cast<int64_t>(random() % 60);
      const auto gateHead = static_cast<int64_t>(random() % static_cast<uint64_t>(gateHeads));
      OperatorInputs bad = inputs;
      const auto size = static_cast<size_t>(dtypeBytes(spec.dtype));
      fill(
          spec.dtype,
          headOf(spec, bad.tensors.at(T::kGates), 1, query, gateHead).subspan(static_cast<size_t>(branch) * size, size),
          std::numeric_limits<double>::quiet_NaN());
      const NamedTensors spoilt = run(made, bad);
      const tools::HostTensor &out = spoilt.at(T::kOut);
      for (int64_t i = 0; i < out.elements(); ++i) {
        const int64_t row = i / spec.vDim, head = row % spec.queryHeads, time = row / spec.queryHeads;
        const bool isSpoilt = time == 60 + query && (perGroup ? head / spec.group() : head) == gateHead;
        if (isSpoilt)
          ASSERT_TRUE(std::isnan(elementOf(out, i))) << "head " << head;
        else
          ASSERT_EQ(elementOf(out, i), elementOf(clean.at(T::kOut), i)) << "time " << time << ", head " << head;
      }
    }
  }
}

} // namespace
} // namespace nsa::test
