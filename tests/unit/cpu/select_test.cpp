// The template of `select` on the CPU backend alone, against the fp64 reference: dense and packed batches, all
// geometries of blocks, and NaN wherever a query does not look.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/gapped_tensor.h"
#include "tests/unit/cpu/launched_queries.h"
#include "tests/unit/cpu/template_kernel.h"
#include "tools/reference/attention.h"
#include "tools/reference/list_check.h"
#include "tools/reference/selection.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nsa::test {
namespace {

struct Lengths {
  int64_t queries, keys;
};

struct Case {
  DType dtype;
  int32_t group, qkDim, cmpBlock, cmpStride, selBlock, selCount, initBlocks, localBlocks;
  std::vector<Lengths> lengths; // of packed sequences; one: a dense batch of kBatch sequences of this length
  TemplateKernel::Pairs config{};

  bool isPacked() const { return lengths.size() > 1; }
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << dtypeName(c.dtype) << " group " << c.group << " dim " << c.qkDim << " blocks " << c.cmpBlock << "/"
       << c.cmpStride << "/" << c.selBlock << " count " << c.selCount << " forced " << c.initBlocks << "+"
       << c.localBlocks << " lengths";
  for (const Lengths &lengths : c.lengths)
    *out << " " << lengths.queries << "/" << lengths.keys;
  *out << " " << formatValues(c.config);
}

constexpr int64_t kBatch = 2, kKvHeads = 2;

class Launch {
public:
  Launch(const Case &c, const std::string &features)
      : c(c), spec(specOf(c)), kernel("tile/select.tile", Operator::kSelect,
                                      {{"dtype", std::string(dtypeName(c.dtype))},
                                       {"packed", c.isPacked() ? "1" : "0"},
                                       {"page_size", "0"},
                                       {"qk_dim", std::to_string(c.qkDim)},
                                       {"group", std::to_string(c.group)},
                                       {"cmp_block", std::to_string(c.cmpBlock)},
                                       {"cmp_stride", std::to_string(c.cmpStride)},
                                       {"sel_block", std::to_string(c.selBlock)},
                                       {"sel_count", std::to_string(c.selCount)}},
                                      c.config, features) {
    if (!c.isPacked()) {
      sequences = reference::denseSequences(kBatch, c.lengths[0].queries, c.lengths[0].keys);
      queryRows = c.lengths[0].queries;
      blockRows = spec.compressedBlocks(c.lengths[0].keys);
      longest = queryRows;
      return;
    }
    // Rows before the first sequence and behind the last belong to no sequence.
    int64_t row = 0;
    queryRows = 2, blockRows = 1;
    for (const Lengths &lengths : c.lengths) {
      reference::Sequence sequence;
      sequence.queryBegin = queryRows;
      sequence.queries = lengths.queries;
      sequence.keys = lengths.keys;
      sequence.firstRow = row;
      sequence.blockBegin = blockRows;
      sequences.push_back(sequence);
      const int64_t blocks = spec.compressedBlocks(lengths.keys);
      const int64_t entry[] = {queryRows, lengths.queries, 0, lengths.keys, blockRows, blocks, 0, 0};
      table.insert(table.end(), std::begin(entry), std::end(entry));
      row += lengths.queries;
      queryRows += lengths.queries;
      blockRows += blocks;
      longest = std::max(longest, lengths.queries);
    }
    ++queryRows, ++blockRows;
  }

  static Spec specOf(const Case &c) {
    Spec spec;
    spec.op = Operator::kSelect;
    spec.dtype = c.dtype;
    spec.kvHeads = kKvHeads;
    spec.queryHeads = kKvHeads * c.group;
    spec.qkDim = spec.vDim = c.qkDim;
    spec.cmpBlock = c.cmpBlock;
    spec.cmpStride = c.cmpStride;
    spec.selBlock = c.selBlock;
    spec.selCount = c.selCount;
    spec.initBlocks = c.initBlocks;
    spec.localBlocks = c.localBlocks;
    return spec;
  }

  int64_t batches() const { return c.isPacked() ? 1 : kBatch; }
  GappedTensor queryTensor() const { return {c.dtype, batches(), queryRows, spec.queryHeads, c.qkDim}; }
  GappedTensor keyTensor() const { return {c.dtype, batches(), blockRows, kKvHeads, c.qkDim}; }
  GappedTensor lseTensor() const { return {DType::kF32, batches(), queryRows, spec.queryHeads, 1}; }
  GappedTensor listTensor() const { return {DType::kI32, batches(), queryRows, kKvHeads, c.selCount * kSlotStride}; }

  reference::Selection selection(GappedTensor &q, GappedTensor &k) const {
    return {spec, q.view(), k.view(), sequences};
  }

  // As the kernel of cmp writes it, from the reference.
  void fillLse(GappedTensor &q, GappedTensor &k, GappedTensor &lse) const {
    // Its values do not matter for the log-sum-exp.
    reference::Attention cmp{.spec = spec, .q = q.view(), .k = k.view(), .v = k.view(), .sequences = sequences};
    cmp.spec.op = Operator::kCmp;
    const std::vector<double> expected = reference::attend(cmp).lse;
    for (const reference::Sequence &sequence : sequences)
      for (int64_t query = 0; query < sequence.queries; ++query)
        for (int64_t head = 0; head < spec.queryHeads; ++head)
          lse.set(lse.index(sequence.batch, sequence.queryBegin + query, head, 0),
                  expected[size_t((sequence.firstRow + query) * spec.queryHeads + head)]);
  }

  void operator()(GappedTensor &q, GappedTensor &k, GappedTensor &lse, GappedTensor &lists, int32_t queryBegin = 0,
                  int32_t queryEnd = INT32_MAX) const {
    std::vector<int64_t> listStrides = lists.strides();
    listStrides.push_back(kSlotStride);
    Arguments arguments;
    arguments.view("q", q.data(), q.strides()).view("k", k.data(), k.strides()).view("lse", lse.data(), lse.strides());
    arguments.view("block_list", lists.data(), listStrides);
    arguments.view("sequences", c.isPacked() ? table.data() : nullptr, {8, 1});
    arguments.i32("seqlen_q", int32_t(c.lengths[0].queries)).i32("seqlen_k", int32_t(c.lengths[0].keys));
    arguments.i32("query_begin", queryBegin).i32("query_end", queryEnd).i32("query_step", kCpuChunkStep);
    arguments.i32("init_blocks", c.initBlocks).i32("local_blocks", c.localBlocks);
    arguments.f32("scale_log2", float(reference::softmaxScale(spec) * 1.4426950408889634));
    // The launcher may know a larger maximum.
    kernel.run(arguments, {{"batch", int64_t(c.isPacked() ? c.lengths.size() : kBatch)},
                           {"kv_heads", kKvHeads},
                           {"max_seqlen_q", longest + 9}});
  }

  reference::BlockLists listsOf(GappedTensor &lists) const {
    return reference::readBlockLists(
        sequences,
        {&lists.integer(0, 0, 0, 0), lists.strides()[0], lists.strides()[1], lists.strides()[2], kSlotStride}, kKvHeads,
        c.selCount);
  }

  // Whether the lists of the sequences' queries are all that was written.
  bool isRestUntouched(GappedTensor &lists) const {
    std::vector<bool> isListed(lists.words().size());
    for (const reference::Sequence &sequence : sequences)
      for (int64_t query = 0; query < sequence.queries; ++query)
        for (int64_t head = 0; head < kKvHeads; ++head)
          for (int64_t slot = 0; slot < c.selCount; ++slot)
            isListed[size_t(lists.index(sequence.batch, sequence.queryBegin + query, head, slot * kSlotStride))] = true;
    for (size_t i = 0; i < isListed.size(); ++i)
      if (!isListed[i] && lists.words()[i] != GappedTensor::kUntouched)
        return false;
    return true;
  }

  const Case &c;
  const Spec spec;
  std::vector<reference::Sequence> sequences;
  int64_t queryRows = 0, blockRows = 0, longest = 0;

private:
  static constexpr int64_t kSlotStride = 2;

  TemplateKernel kernel;
  std::vector<int32_t> table;
};

class CpuSelect : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(CpuSelect, MatchesReference) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const Launch launch(c, features);
  ASSERT_FALSE(HasFailure());
  GappedTensor q = launch.queryTensor(), k = launch.keyTensor(), lse = launch.lseTensor(), lists = launch.listTensor();
  for (const reference::Sequence &sequence : launch.sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query)
      q.draw(engine, sequence.batch, sequence.queryBegin + query);
    for (int64_t block = 0; block < launch.spec.compressedBlocks(sequence.keys); ++block)
      k.draw(engine, sequence.keyBatch, sequence.blockBegin + block);
  }
  launch.fillLse(q, k, lse);
  launch(q, k, lse, lists);
  const reference::BlockLists whole = launch.listsOf(lists);
  const reference::ListReport report = reference::checkLists(launch.selection(q, k), whole);
  EXPECT_TRUE(report.isRight()) << report.toString();
  EXPECT_TRUE(launch.isRestUntouched(lists));

  // The same lists from two launches over ranges of queries, and nothing outside of them.
  const int64_t border = std::uniform_int_distribution<int64_t>(0, launch.queryRows)(engine);
  GappedTensor parts = launch.listTensor();
  launch(q, k, lse, parts, 0, int32_t(border));
  for (const reference::Sequence &sequence : launch.sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      ASSERT_EQ(parts.integer(sequence.batch, sequence.queryBegin + query, 0, 0) != GappedTensor::kUntouched,
                isLaunched(c.isPacked(), query, sequence.queries, sequence.queryBegin, 0, border))
          << "range up to " << border;
  launch(q, k, lse, parts, int32_t(border), INT32_MAX);
  EXPECT_EQ(launch.listsOf(parts).blocks, whole.blocks) << "border " << border;

  // The same list for a query whatever stands in other queries and in the blocks that it does not see.
  for (const reference::Sequence &sequence : launch.sequences) {
    if (sequence.queries == 0)
      continue;
    const int64_t query = std::uniform_int_distribution<int64_t>(0, sequence.queries - 1)(engine);
    const int64_t visible = launch.spec.compressedBlocks(sequence.position(query) + 1);
    GappedTensor otherQ = launch.queryTensor(), otherK = launch.keyTensor(), otherLse = launch.lseTensor();
    const int64_t time = sequence.queryBegin + query;
    for (int64_t head = 0; head < launch.spec.queryHeads; ++head) {
      for (int64_t column = 0; column < c.qkDim; ++column)
        otherQ.set(otherQ.index(sequence.batch, time, head, column), q.at(sequence.batch, time, head, column));
      otherLse.set(otherLse.index(sequence.batch, time, head, 0), lse.at(sequence.batch, time, head, 0));
    }
    for (int64_t block = 0; block < visible; ++block)
      for (int64_t head = 0; head < kKvHeads; ++head)
        for (int64_t column = 0; column < c.qkDim; ++column) {
          const int64_t row = sequence.blockBegin + block;
          otherK.set(otherK.index(sequence.keyBatch, row, head, column), k.at(sequence.keyBatch, row, head, column));
        }
    GappedTensor other = launch.listTensor();
    launch(otherQ, otherK, otherLse, other);
    const reference::BlockLists poisoned = launch.listsOf(other);
    for (int64_t head = 0; head < kKvHeads; ++head)
      ASSERT_TRUE(
          std::ranges::equal(poisoned.at(sequence.firstRow + query, head), whole.at(sequence.firstRow + query, head)))
          << "query " << query << " of " << sequence.queries << "/" << sequence.keys;
  }
}

// A compressed key of NaN makes NaN of the scores of all queries that see it; lists stay complete, and lower blocks
// come first.
TEST_P(CpuSelect, RanksNanLast) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const Launch launch(c, features);
  ASSERT_FALSE(HasFailure());
  GappedTensor q = launch.queryTensor(), k = launch.keyTensor(), lse = launch.lseTensor(), lists = launch.listTensor();
  for (const reference::Sequence &sequence : launch.sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query)
      q.draw(engine, sequence.batch, sequence.queryBegin + query);
    const int64_t blocks = launch.spec.compressedBlocks(sequence.keys);
    for (int64_t block = 0; block < blocks; ++block)
      k.draw(engine, sequence.keyBatch, sequence.blockBegin + block);
    if (blocks > 0)
      k.poison(sequence.keyBatch,
               sequence.blockBegin + std::uniform_int_distribution<int64_t>(blocks / 2, blocks - 1)(engine));
  }
  launch.fillLse(q, k, lse);
  launch(q, k, lse, lists);
  const reference::ListReport report = reference::checkLists(launch.selection(q, k), launch.listsOf(lists));
  EXPECT_TRUE(report.isRight()) << report.toString();
}

// A log-sum-exp of -inf is that of a head whose scores are all -inf: it gives no block any weight, as does one that is
// far above all scores.
TEST_P(CpuSelect, HeadsWithoutWeightCountNothing) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const Launch launch(c, features);
  ASSERT_FALSE(HasFailure());
  GappedTensor q = launch.queryTensor(), k = launch.keyTensor(), lse = launch.lseTensor();
  for (const reference::Sequence &sequence : launch.sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query)
      q.draw(engine, sequence.batch, sequence.queryBegin + query);
    for (int64_t block = 0; block < launch.spec.compressedBlocks(sequence.keys); ++block)
      k.draw(engine, sequence.keyBatch, sequence.blockBegin + block);
  }
  launch.fillLse(q, k, lse);
  std::vector<reference::BlockLists> found;
  for (float weightless : {-INFINITY, 1e30f}) {
    for (const reference::Sequence &sequence : launch.sequences)
      for (int64_t query = 0; query < sequence.queries; ++query)
        for (int64_t head = 0; head < launch.spec.queryHeads; head += c.group)
          lse.set(lse.index(sequence.batch, sequence.queryBegin + query, head, 0), weightless);
    GappedTensor lists = launch.listTensor();
    launch(q, k, lse, lists);
    found.push_back(launch.listsOf(lists));
  }
  EXPECT_EQ(found[0].blocks, found[1].blocks);
}

// All visible blocks alike: the scores are ties but for what blocks overlap, and lower ones win.
TEST_P(CpuSelect, TakesTheLowerOfEqualBlocks) {
  const auto &[features, c] = GetParam();
  const Launch launch(c, features);
  ASSERT_FALSE(HasFailure());
  GappedTensor q = launch.queryTensor(), k = launch.keyTensor(), lse = launch.lseTensor(), lists = launch.listTensor();
  for (const reference::Sequence &sequence : launch.sequences) {
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < launch.spec.queryHeads; ++head)
        for (int64_t column = 0; column < c.qkDim; ++column)
          q.set(q.index(sequence.batch, sequence.queryBegin + query, head, column), 0);
    for (int64_t block = 0; block < launch.spec.compressedBlocks(sequence.keys); ++block)
      for (int64_t head = 0; head < kKvHeads; ++head)
        for (int64_t column = 0; column < c.qkDim; ++column)
          k.set(k.index(sequence.keyBatch, sequence.blockBegin + block, head, column), 1);
    // With a log-sum-exp of 0 every weight is exactly 1, and the sums are whole numbers.
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < launch.spec.queryHeads; ++head)
        lse.set(lse.index(sequence.batch, sequence.queryBegin + query, head, 0), 0);
  }
  launch(q, k, lse, lists);
  const reference::BlockLists found = launch.listsOf(lists);
  for (const reference::Sequence &sequence : launch.sequences)
    for (int64_t query = 0; query < sequence.queries; ++query) {
      const int64_t own = sequence.position(query) / c.selBlock;
      const int64_t visible = launch.spec.compressedBlocks(sequence.position(query) + 1);
      std::vector<double> scores(size_t(own + 1));
      for (int64_t j = 0; j <= own; ++j)
        for (int64_t block = 0; block < visible; ++block)
          scores[size_t(j)] +=
              double(std::max<int64_t>(0, std::min(block * c.cmpStride + c.cmpBlock, (j + 1) * c.selBlock) -
                                              std::max(block * c.cmpStride, j * c.selBlock)));
      std::vector<int32_t> expected = reference::chooseBlocks(scores, launch.spec);
      expected.resize(size_t(c.selCount), -1);
      for (int64_t head = 0; head < kKvHeads; ++head)
        ASSERT_TRUE(std::ranges::equal(found.at(sequence.firstRow + query, head), expected))
            << "query " << query << " of " << sequence.queries << "/" << sequence.keys;
    }
}

constexpr DType kBf16 = DType::kBf16, kF16 = DType::kF16, kF32 = DType::kF32;

const Case kCases[] = {
    {kBf16, 4, 64, 32, 16, 64, 4, 1, 2, {{300, 900}}},
    {kF32, 1, 16, 32, 16, 64, 3, 1, 2, {{150, 1500}}, {{"block_tile", "16"}, {"query_tile", "16"}}},
    {kF16, 3, 40, 16, 16, 16, 16, 0, 1, {{70, 700}, {0, 0}, {5, 5}, {0, 40}, {33, 640}, {1, 999}}}, // l = d = l'
    {kF32, 2, 8, 64, 8, 16, 5, 2, 3, {{90, 400}}},                                                  // l > l'
    {kF32, 2, 8, 96, 16, 32, 6, 1, 1, {{64, 64}, {40, 500}}, {{"tap_tile", "4"}}},                  // l > l' + d
    {kF32, 5, 12, 48, 16, 32, 7, 0, 2, {{50, 800}}, {{"tap_tile", "1"}}},                           // l = l' + d
    {kF32, 1, 4, 4, 4, 4, 64, 4, 60, {{80, 2000}}, {{"block_tile", "32"}}},
    {kBf16, 4, 32, 8, 4, 8, 65, 1, 2, {{70, 900}}},
    {kF32, 2, 16, 8, 4, 4, 97, 1, 33, {{40, 700}, {3, 388}, {30, 400}}, {{"query_tile", "128"}}},
    {kF16, 3, 16, 4, 4, 4, 128, 0, 1, {{90, 1000}}, {{"query_tile", "16"}}},
    {kBf16, 128, 8, 32, 16, 64, 2, 0, 1, {{20, 300}, {17, 17}}},
    {kF32, 2, 7, 12, 4, 20, 1, 0, 1, {{60, 130}}},
    {kF32, 2, 3, 32, 1, 4, 3, 0, 1, {{40, 130}}, {{"query_tile", "16"}}},
    {kF32, 2, 33, 32, 32, 96, 4, 1, 2, {{31, 31}, {100, 900}, {3, 32}}, {{"query_tile", "128"}, {"tap_tile", "2"}}},
};
INSTANTIATE_TEST_SUITE_P(Cases, CpuSelect,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kCases)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuSelect);

} // namespace
} // namespace nsa::test
