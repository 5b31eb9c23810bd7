// Lists, and inverses of lists, that break their rules, in the gradients that read them: both ways to the gradient of
// queries, with an inverse that the plan makes and with the caller's. For every device.
#include "runtime/base/key_splits.h"
#include "tests/harness/broken_lists.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace nsa::test {
namespace {

using T = TensorName;

class BadGradients : public OperatorTest {
protected:
  // Calls `visit` for both operators, both layouts, and a group for slots and one for a walk query by query.
  static void forEachSpec(const std::function<void(const Spec &)> &visit) {
    for (const Operator op : {Operator::kSelBwd, Operator::kNsaBwd})
      for (const Layout layout : {Layout::kDense, Layout::kPacked})
        for (const int32_t group : {2, 8}) {
          SCOPED_TRACE(std::string(operatorName(op)) + " " + std::string(layoutName(layout)) + ", group of " +
                       std::to_string(group));
          Spec spec = smallSpec(op, DType::kBf16);
          spec.layout = layout;
          spec.queryHeads = group * spec.kvHeads;
          EXPECT_EQ(takesSlots(spec, {2, 120, 60, 125}), group == 2);
          visit(spec);
          if (HasFailure())
            return;
        }
  }

  // The inverse of lists of which some may be malformed.
  tools::HostTensor indexOf(const OperatorInputs &inputs) {
    OperatorInputs lists{.spec = inputs.spec, .maxima = inputs.maxima, .extents = inputs.extents, .tensors = {}};
    lists.spec.op = Operator::kInvert;
    for (const T name : {T::kBlockList, T::kCuSeqlensQ, T::kCuSeqlensK})
      if (inputs.tensors.contains(name))
        lists.tensors[name] = inputs[name];
    if (lists.spec.layout == Layout::kDense) // takes as many keys as queries
      lists.extents.timeK = inputs.extents.timeK;
    return runAnyway(lists).outputs.at(T::kBlockIndex);
  }
};

// The query has the gradients of a query that attends nothing, and no gradient of a key or a value has a part of it.
TEST_F(BadGradients, MalformedListsAddNothingAndAreReported) {
  constexpr int64_t kQuery = 31, kHead = 1;
  forEachSpec([&](const Spec &spec) {
    const bool packed = spec.layout == Layout::kPacked;
    const std::vector<int64_t> queries(2, packed ? 60 : 125), keys(2, 125); // blocks 0 .. 7
    const OperatorInputs inputs = tools::drawInputs(spec, {queries, keys}, freshSeed());
    const reference::Sequence sequence = tools::sequencesOf(inputs)[1];
    const auto listOf = [&](OperatorInputs &changed) -> std::span<int32_t> {
      const std::span<std::byte> bytes =
          headOf(spec, changed.tensors.at(T::kBlockList), sequence.batch, sequence.queryBegin + kQuery, kHead);
      return {reinterpret_cast<int32_t *>(bytes.data()), static_cast<size_t>(spec.selCount)};
    };
    OperatorInputs empty = inputs;
    std::ranges::fill(listOf(empty), -1);
    for (const bool ownsIndex : {false, true}) {
      if (ownsIndex)
        empty.tensors[T::kBlockIndex] = indexOf(empty);
      const NamedTensors expected = run(empty);
      for (const auto &[name, damage] : brokenLists()) {
        SCOPED_TRACE(std::string(name) + (ownsIndex ? ", with the caller's index" : ""));
        OperatorInputs bad = inputs;
        const std::span<int32_t> list = listOf(bad);
        for (int32_t i = 0; int32_t &block : list)
          block = i++;
        damage(list);
        if (ownsIndex)
          bad.tensors[T::kBlockIndex] = empty.tensors.at(T::kBlockIndex);
        const Outcome outcome = runAnyway(bad);
        const std::string text = outcome.status.toString();
        EXPECT_EQ(outcome.status.code(), ErrorCode::kDeviceError) << text;
        const std::string place = packed ? "block_list[91, 1, " : "block_list[1, 31, 1, ";
        EXPECT_NE(text.find(session->isCuda() ? "sequence 1" : place), std::string::npos) << text;
        for (const auto &[output, tensor] : expected)
          EXPECT_EQ(outcome.outputs.at(output).bytes, tensor.bytes) << tensorName(output);
        if (HasFailure())
          return;
      }
    }
  });
}

// A `block_index` that is not the inverse of the lists is reported, whatever it holds, and nothing is read out of
// range. The host can read what a CPU kernel refused: the first wrong number.
TEST_F(BadGradients, AWrongIndexIsReported) {
  using Own = std::span<int32_t>;
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  forEachSpec([&](const Spec &spec) {
    const bool packed = spec.layout == Layout::kPacked;
    const OperatorInputs right = tools::drawInputs(spec, {{150, 150}, {150, 150}}, freshSeed());
    const tools::HostTensor index = indexOf(right);
    // Of the second sequence and the first head, where the offsets of its 10 blocks begin.
    const int64_t blocks = 10, places = index.shape.back(), first = packed ? 150 / 16 + 2 + 150 * spec.selCount : 0;
    const auto begin = static_cast<size_t>(packed ? first : 2 * places);
    const struct {
      const char *what;
      std::function<void(Own)> change;
    } wrongs[] = {
        {"a query in the place of another one", [&](Own own) { own[blocks + 1] += 1; }},
        {"two queries exchanged", [&](Own own) { std::swap(own[blocks + 1], own[blocks + 2]); }},
        {"a query that does not exist", [&](Own own) { own[blocks + 3] = 1 << 30; }},
        {"the greatest number for a query", [&](Own own) { own[blocks + 1] = kMost; }},
        {"a query below 0", [&](Own own) { own[blocks + 3] = -7; }},
        {"the least number for a query", [&](Own own) { own[blocks + 1] = kLeast; }},
        {"an offset behind all entries", [&](Own own) { own[4] = 1 << 30; }},
        {"an offset below 0", [&](Own own) { own[4] = -(1 << 30); }},
        {"most offsets behind all entries", [&](Own own) { std::ranges::fill(own.first(blocks - 1), kMost); }},
        {"an entry too much", [&](Own own) { own[blocks] += 1; }},
        {"all zeros", [&](Own own) { std::ranges::fill(own.first(blocks + 1), 0); }}};
    for (const auto &wrong : wrongs) {
      SCOPED_TRACE(wrong.what);
      OperatorInputs inputs = right;
      inputs.tensors[T::kBlockIndex] = index;
      const Own all = integers(inputs.tensors[T::kBlockIndex]);
      wrong.change(all.subspan(begin));
      const Outcome outcome = runAnyway(inputs);
      EXPECT_EQ(outcome.status.code(), ErrorCode::kDeviceError);
      std::string place = "block_index";
      if (!session->isCuda()) {
        tools::HostTensor before = index;
        const auto at = std::ranges::mismatch(integers(before), all).in2 - all.begin();
        place += (packed ? "[0, " : "[1, 0, ") + std::to_string(first + at - static_cast<int64_t>(begin)) +
                 "] = " + std::to_string(all[static_cast<size_t>(at)]);
      }
      EXPECT_NE(outcome.status.toString().find(place), std::string::npos) << outcome.status.toString() << "\n" << place;
    }
  });
}

} // namespace
} // namespace nsa::test
