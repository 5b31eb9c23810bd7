// The inverse of lists of blocks, as a whole tensor: offsets, queries, and what must not be written. For every device.
#include "tests/harness/broken_lists.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace nsa::test {
namespace {

using T = TensorName;
using tools::SequenceLengths;

class IndexTest : public OperatorTest {
protected:
  static Spec specOf(Layout layout, int32_t selCount = 5, int32_t selBlock = 16, int32_t kvHeads = 2) {
    Spec spec = smallSpec(Operator::kInvert, DType::kBf16);
    spec.layout = layout;
    spec.kvHeads = kvHeads;
    spec.queryHeads = 4 * kvHeads;
    spec.selCount = selCount;
    spec.selBlock = selBlock;
    return spec;
  }
  // The list of a query of a sequence, counted over all sequences.
  static std::span<int32_t> listOf(OperatorInputs &inputs, size_t sequence, int64_t query, int64_t head) {
    const reference::Sequence own = tools::sequencesOf(inputs)[sequence];
    const std::span<std::byte> bytes =
        headOf(inputs.spec, inputs.tensors.at(T::kBlockList), own.batch, own.queryBegin + query, head);
    return {reinterpret_cast<int32_t *>(bytes.data()), static_cast<size_t>(inputs.spec.selCount)};
  }
  // Each list names these blocks.
  static void fillLists(OperatorInputs &inputs, const std::vector<int32_t> &blocks) {
    const std::span<int32_t> lists = integers(inputs.tensors.at(T::kBlockList));
    const auto count = static_cast<size_t>(inputs.spec.selCount);
    for (size_t i = 0; i < lists.size(); ++i)
      lists[i] = i % count < blocks.size() ? blocks[i % count] : -1;
  }

  using Query = std::tuple<size_t, int64_t, int64_t>; // a sequence, a query and a head
  // Compares every element. The lists of the queries in `empty` count as empty, and the sequences in `skipped` have no
  // part.
  static void expectInverse(OperatorInputs inputs, const NamedTensors &outputs, const std::set<Query> &empty = {},
                            const std::set<size_t> &skipped = {}) {
    const Spec &spec = inputs.spec;
    tools::HostTensor index = outputs.at(T::kBlockIndex);
    const int64_t places = index.shape.back();
    std::vector<int32_t> expected(static_cast<size_t>(index.elements()));
    std::memset(expected.data(), tools::poisonOf(DType::kI32), expected.size() * sizeof(int32_t));
    const std::vector<reference::Sequence> sequences = tools::sequencesOf(inputs);
    int64_t keysBefore = 0, queriesBefore = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto [keys, queries] = std::pair(sequences[i].keys, sequences[i].queries);
      const bool packed = spec.layout == Layout::kPacked;
      for (int64_t head = 0; head < spec.kvHeads && keys > 0 && !skipped.contains(i); ++head) {
        std::multimap<int64_t, int32_t> listing; // block to query
        for (int64_t query = 0; query < queries; ++query)
          if (!empty.contains({i, query, head}))
            for (const int32_t block : listOf(inputs, i, query, head))
              if (block >= 0 && int64_t{block} * spec.selBlock <= keys - queries + query)
                listing.emplace(block, static_cast<int32_t>(query));
        const auto sequence = static_cast<int64_t>(i);
        int64_t place = packed
                            ? head * places + keysBefore / spec.selBlock + 2 * sequence + queriesBefore * spec.selCount
                            : (sequence * spec.kvHeads + head) * places;
        const int64_t blocks = keys / spec.selBlock + (keys % spec.selBlock != 0);
        int32_t before = 0;
        for (int64_t block = 0; block <= blocks; ++block) {
          expected.at(static_cast<size_t>(place++)) = before;
          before += static_cast<int32_t>(listing.count(block));
        }
        for (const auto &[block, query] : listing)
          expected.at(static_cast<size_t>(place++)) = query;
      }
      keysBefore += keys;
      queriesBefore += queries;
    }
    const std::span<const int32_t> actual = integers(index);
    const auto [wrong, wanted] = std::ranges::mismatch(actual, expected);
    if (wrong != actual.end())
      ADD_FAILURE() << "element " << wrong - actual.begin() << " of " << actual.size() << " is " << *wrong
                    << " and must be " << *wanted;
  }
  void expectRun(const OperatorInputs &inputs, const tools::Spacing &spacing = {}) {
    const NamedTensors outputs = run(inputs, spacing);
    expectInverse(inputs, outputs);
    checkOutputs(inputs, outputs);
  }
};

// Lists of any length, blocks and tiles that the lengths do not fill, one and several heads.
TEST_F(IndexTest, DrawnListsAreInverted) {
  std::mt19937_64 random(freshSeed());
  for (const Layout layout : {Layout::kDense, Layout::kPacked})
    for (const int32_t selCount : {1, 2, 13, 16, 64, Spec::kMostSelCount})
      for (const auto &[selBlock, kvHeads] : {std::pair{1, 1}, {7, 3}, {64, 2}}) {
        SCOPED_TRACE(std::string(layoutName(layout)) + ", lists of " + std::to_string(selCount) + ", blocks of " +
                     std::to_string(selBlock));
        const SequenceLengths lengths = layout == Layout::kDense
                                            ? SequenceLengths{{170, 170}, {170, 170}}
                                            : SequenceLengths{{90, 0, 1, 128, 0, 33}, {300, 0, 1, 128, 65, 448}};
        Spec spec = specOf(layout, selCount, selBlock, kvHeads);
        spec.localBlocks = 1, spec.initBlocks = 0;
        expectRun(tools::drawInputs(spec, lengths, random()), {.base = 3, .gap = 5});
        if (HasFailure())
          return;
      }
}

// So many queries that programs share them, and more blocks than a tile has.
TEST_F(IndexTest, PartsOfQueriesFollowEachOther) {
  std::mt19937_64 random(freshSeed());
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    const SequenceLengths lengths = layout == Layout::kDense ? SequenceLengths{{2100, 2100}, {2100, 2100}}
                                                             : SequenceLengths{{1700, 2, 513}, {3001, 130, 513}};
    OperatorInputs inputs = tools::drawInputs(specOf(layout, 16, 8), lengths, random());
    expectRun(inputs);
    // All queries list one block, and no query lists another one.
    fillLists(inputs, {0});
    expectRun(inputs);
    fillLists(inputs, {});
    expectRun(inputs);
  }
}

// More than 4096 queries of a part list a block: sums of f32 take the digits of counts apart.
TEST_F(IndexTest, CountsAreExactInParts) {
  OperatorInputs inputs = tools::drawInputs(specOf(Layout::kDense, 2, 1 << 16, 1), {{270000}, {270000}}, freshSeed());
  fillLists(inputs, {0, 3});
  expectRun(inputs);
}

TEST_F(IndexTest, ListsOfSelectionAreInverted) {
  Spec spec = specOf(Layout::kPacked);
  spec.op = Operator::kSelect;
  OperatorInputs inputs = tools::drawInputs(spec, {{300, 80}, {300, 211}}, freshSeed());
  const NamedTensors lists = run(inputs);
  inputs.spec.op = Operator::kInvert;
  inputs.tensors.erase(T::kQ);
  inputs.tensors.erase(T::kQCmp);
  inputs.tensors.erase(T::kKComp);
  inputs.tensors[T::kBlockList] = lists.at(T::kBlockList);
  expectRun(inputs);
}

// What select and nsa make on request has the bits of what invert makes. The queries of nsa come in chunks that end
// inside of sequences, and the keys in front of the queries are blocks too, also where every block is selected.
TEST_F(IndexTest, SelectionInvertsItsLists) {
  for (const Operator op : {Operator::kSelect, Operator::kNsa})
    for (const Layout layout : {Layout::kDense, Layout::kPacked})
      for (const int32_t selCount : {5, 16}) {
        SCOPED_TRACE(std::string(operatorName(op)) + " " + std::string(layoutName(layout)));
        Spec spec = specOf(layout, selCount, 16, 1);
        spec.op = op;
        spec.makeIndex = true;
        spec.dtype = DType::kF32;
        spec.queryHeads = 128;
        spec.qkDim = 8;
        spec.vDim = 256;
        const SequenceLengths dense =
            op == Operator::kNsa ? SequenceLengths{{150}, {170}} : SequenceLengths{{150, 150}, {150, 150}};
        OperatorInputs inputs = tools::drawInputs(
            spec, layout == Layout::kDense ? dense : SequenceLengths{{150, 0, 140, 0}, {160, 0, 170, 30}}, freshSeed());
        const NamedTensors outputs = run(inputs);
        ASSERT_TRUE(outputs.contains(T::kBlockIndex));
        checkOutputs(inputs, outputs);
        OperatorInputs lists{.spec = spec, .maxima = inputs.maxima, .extents = inputs.extents, .tensors = {}};
        lists.spec.op = Operator::kInvert;
        lists.tensors[T::kBlockList] = outputs.at(T::kBlockList);
        for (const T name : {T::kCuSeqlensQ, T::kCuSeqlensK})
          if (inputs.tensors.contains(name))
            lists.tensors[name] = inputs[name];
        expectInverse(lists, outputs);
        if (layout == Layout::kPacked || op == Operator::kSelect) // a dense invert takes as many keys as queries
          EXPECT_EQ(outputs.at(T::kBlockIndex).bytes, run(lists).at(T::kBlockIndex).bytes);
      }
}

// A plan that makes the inverse makes it for the calls that bind it.
TEST_F(IndexTest, ACallNeedNotAskForTheInverse) {
  Spec spec = specOf(Layout::kDense);
  spec.op = Operator::kNsa;
  spec.makeIndex = true;
  const OperatorInputs inputs = tools::drawInputs(spec, {{150}, {150}}, freshSeed());
  const tools::PlanHandle made = plan(spec, inputs.maxima);
  const NamedTensors all = run(made, inputs);
  Result<tools::RunResult> few = tools::runOnce(session->accelerator(), made.get(), inputs, {});
  ASSERT_TRUE(few.isOk()) << few.status().toString();
  EXPECT_TRUE(all.contains(T::kBlockIndex) && !few->outputs.contains(T::kBlockIndex));
  EXPECT_EQ(all.at(T::kOut).bytes, few->outputs.at(T::kOut).bytes);
}

// A query that stands in a block lists it, and a query in front of it may name it and sees no key of it.
TEST_F(IndexTest, QueriesInFrontOfABlockAreLeftOut) {
  OperatorInputs inputs = tools::drawInputs(specOf(Layout::kPacked), {{150, 20}, {150, 100}}, freshSeed());
  fillLists(inputs, {0, 1, 3, 5});
  expectRun(inputs);
}

// The offsets of keys without queries are all 0, and a sequence without keys has no part.
TEST_F(IndexTest, NoQueriesMakeEmptyBlocks) {
  expectRun(tools::drawInputs(specOf(Layout::kPacked), {{0, 0, 0}, {50, 0, 33}}, freshSeed()));
  expectRun(tools::drawInputs(specOf(Layout::kPacked), {{0, 0}, {0, 0}}, freshSeed()));
  expectRun(tools::drawInputs(specOf(Layout::kDense), {{0}, {0}}, freshSeed()));
}

// Maxima beyond the call, and a tensor with more room than the call needs.
TEST_F(IndexTest, MaximaAndTensorsMayBeLarger) {
  OperatorInputs inputs = tools::drawInputs(specOf(Layout::kPacked), {{60, 40}, {130, 40}}, freshSeed());
  inputs.maxima = {.batch = 5, .tokensQ = 4000, .seqlenQ = 3000, .seqlenK = 5000};
  inputs.extents.timeK += 700;
  expectRun(inputs);
}

TEST_F(IndexTest, MalformedListsCountAsEmptyAndAreReported) {
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    const bool packed = layout == Layout::kPacked;
    OperatorInputs inputs = tools::drawInputs(
        specOf(layout), packed ? SequenceLengths{{60, 60}, {125, 125}} : SequenceLengths{{125, 125}, {125, 125}},
        freshSeed());
    fillLists(inputs, {0, 1, 2, 3, 4});
    for (const auto &[name, damage] : brokenLists()) {
      SCOPED_TRACE(std::string(name) + " " + std::string(layoutName(layout)));
      OperatorInputs bad = inputs;
      damage(listOf(bad, 1, 31, 1));
      const Outcome outcome = runAnyway(bad);
      ASSERT_EQ(outcome.status.code(), ErrorCode::kDeviceError) << outcome.status.toString();
      const std::string text = outcome.status.toString();
      const std::string place = packed ? "block_list[91, 1, " : "block_list[1, 31, 1, ";
      EXPECT_NE(text.find(session->isCuda() ? "sequence 1" : place), std::string::npos) << text;
      expectInverse(bad, outcome.outputs, {{1, 31, 1}});
      checkOutputs(bad, outcome.outputs);
      ASSERT_FALSE(HasFailure());
    }
    // Any bytes at all.
    std::mt19937_64 random(freshSeed());
    OperatorInputs bad = inputs;
    std::set<Query> empty;
    for (size_t sequence = 0; sequence < 2; ++sequence)
      for (int64_t query = 0; query < (packed ? 60 : 125); ++query)
        for (int64_t head = 0; head < 2; ++head) {
          for (int32_t &block : listOf(bad, sequence, query, head))
            block = static_cast<int32_t>(random());
          empty.insert({sequence, query, head});
        }
    const Outcome outcome = runAnyway(bad);
    EXPECT_EQ(outcome.status.code(), ErrorCode::kDeviceError) << outcome.status.toString();
    expectInverse(bad, outcome.outputs, empty);
  }
}

// On a GPU the other sequences are inverted; the host refuses the whole call. Lengths are malformed also where the
// tensor has no room for the keys.
TEST_F(IndexTest, SequencesOfBrokenLengthsHaveNoPart) {
  const OperatorInputs inputs = tools::drawInputs(specOf(Layout::kPacked), {{60, 0, 40}, {90, 20, 130}}, freshSeed());
  const auto room = static_cast<int32_t>((inputs.extents.timeK / inputs.spec.selBlock + 1) * inputs.spec.selBlock - 1);
  for (const auto &[name, end] : {std::pair{T::kCuSeqlensQ, 59},
                                  {T::kCuSeqlensQ, 101},
                                  {T::kCuSeqlensK, room + 1},
                                  {T::kCuSeqlensK, 109},
                                  {T::kCuSeqlensK, std::numeric_limits<int32_t>::min()}}) {
    SCOPED_TRACE(std::string(tensorName(name)) + " ends with " + std::to_string(end));
    OperatorInputs bad = inputs;
    bad.maxima.seqlenK = 1000;
    integers(bad.tensors.at(name))[3] = end;
    const Outcome outcome = runAnyway(bad);
    ASSERT_FALSE(outcome.status.isOk());
    const std::string text = outcome.status.toString();
    EXPECT_NE(text.find(tensorName(name)), std::string::npos) << text;
    if (end == room + 1 && !session->isCuda())
      EXPECT_NE(text.find("block_index has room = " + std::to_string(room)), std::string::npos) << text;
    expectInverse(inputs, outcome.outputs, {}, session->isCuda() ? std::set<size_t>{2} : std::set<size_t>{0, 1, 2});
  }
  OperatorInputs last = inputs; // the last keys for which there is room
  last.maxima.seqlenK = 1000;
  integers(last.tensors.at(T::kCuSeqlensK))[3] = room;
  expectRun(last);
}

} // namespace
} // namespace nsa::test
