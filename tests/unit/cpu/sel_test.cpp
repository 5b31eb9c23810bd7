// The template of `sel` on the CPU backend alone, against the fp64 reference: lists of all lengths, malformed ones, and
// NaN wherever a query does not look.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/gapped_tensor.h"
#include "tests/unit/cpu/launched_queries.h"
#include "tests/unit/cpu/template_kernel.h"
#include "tools/reference/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace nsa::test {
namespace {

struct Lengths {
  int64_t queries, keys;
};

struct Case {
  DType dtype;
  int32_t group, qkDim, vDim, selBlock, selCount;
  std::vector<Lengths> lengths; // of packed sequences; one: a dense batch of kBatch sequences of this length
  TemplateKernel::Pairs config{};

  bool isPacked() const { return lengths.size() > 1; }
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << dtypeName(c.dtype) << " group " << c.group << " dims " << c.qkDim << "/" << c.vDim << " block " << c.selBlock
       << " count " << c.selCount << " lengths";
  for (const Lengths &lengths : c.lengths)
    *out << " " << lengths.queries << "/" << lengths.keys;
  *out << " " << formatValues(c.config);
}

constexpr int64_t kBatch = 2, kKvHeads = 2;

// Inputs and outputs of a launch. Inputs are drawn where the sequences have tokens.
struct Tensors {
  GappedTensor q, k, v, lists, out, lse, reads;
};

class Launch {
public:
  Launch(const Case &c, const std::string &features)
      : c(c), spec(specOf(c)), kernel("tile/sel.tile", Operator::kSel,
                                      {{"dtype", std::string(dtypeName(c.dtype))},
                                       {"packed", c.isPacked() ? "1" : "0"},
                                       {"page_size", "0"},
                                       {"qk_dim", std::to_string(c.qkDim)},
                                       {"v_dim", std::to_string(c.vDim)},
                                       {"group", std::to_string(c.group)},
                                       {"sel_block", std::to_string(c.selBlock)},
                                       {"sel_count", std::to_string(c.selCount)}},
                                      c.config, features) {
    if (!c.isPacked()) {
      sequences = reference::denseSequences(kBatch, c.lengths[0].queries, c.lengths[0].keys);
      queryRows = longest = c.lengths[0].queries;
      keyRows = c.lengths[0].keys;
      return;
    }
    // Rows before the first sequence and behind the last belong to no sequence.
    int64_t row = 0;
    queryRows = 2, keyRows = 1;
    for (const Lengths &lengths : c.lengths) {
      reference::Sequence sequence;
      sequence.queryBegin = queryRows;
      sequence.queries = lengths.queries;
      sequence.keyBegin = keyRows;
      sequence.keys = lengths.keys;
      sequence.firstRow = row;
      sequences.push_back(sequence);
      const int64_t entry[] = {queryRows, lengths.queries, keyRows, lengths.keys, 0, 0, 0, 0};
      table.insert(table.end(), std::begin(entry), std::end(entry));
      row += lengths.queries;
      queryRows += lengths.queries;
      keyRows += lengths.keys;
      longest = std::max(longest, lengths.queries);
    }
    ++queryRows, ++keyRows;
  }

  static Spec specOf(const Case &c) {
    Spec spec;
    spec.op = Operator::kSel;
    spec.dtype = c.dtype;
    spec.kvHeads = kKvHeads;
    spec.queryHeads = kKvHeads * c.group;
    spec.qkDim = c.qkDim;
    spec.vDim = c.vDim;
    spec.selBlock = c.selBlock;
    spec.selCount = c.selCount;
    return spec;
  }

  int64_t batches() const { return c.isPacked() ? 1 : kBatch; }
  Tensors tensors() const {
    return {{c.dtype, batches(), queryRows, spec.queryHeads, c.qkDim},
            {c.dtype, batches(), keyRows, kKvHeads, c.qkDim},
            {c.dtype, batches(), keyRows, kKvHeads, c.vDim},
            {DType::kI32, batches(), queryRows, kKvHeads, c.selCount * kSlotStride},
            {c.dtype, batches(), queryRows, spec.queryHeads, c.vDim},
            {DType::kF32, batches(), queryRows, spec.queryHeads, 1},
            {DType::kI32, batches(), queryRows, kKvHeads, 1}};
  }

  int32_t &slot(Tensors &t, const reference::Sequence &sequence, int64_t query, int64_t kvHead, int64_t slot) const {
    return t.lists.integer(sequence.batch, sequence.queryBegin + query, kvHead, slot * kSlotStride);
  }

  void forEachList(const std::function<void(const reference::Sequence &, int64_t query, int64_t kvHead)> &visit) const {
    for (const reference::Sequence &sequence : sequences)
      for (int64_t query = 0; query < sequence.queries; ++query)
        for (int64_t kvHead = 0; kvHead < kKvHeads; ++kvHead)
          visit(sequence, query, kvHead);
  }

  // Lists of any length of any of the sequence's blocks, those that a query may not see included.
  void drawLists(Tensors &t, std::mt19937 &engine) const {
    forEachList([&](const reference::Sequence &sequence, int64_t query, int64_t kvHead) {
      const int32_t blocks = int32_t((sequence.keys - 1) / c.selBlock + 1);
      std::vector<int32_t> list(static_cast<size_t>(blocks));
      std::iota(list.begin(), list.end(), 0);
      std::ranges::shuffle(list, engine);
      list.resize(std::min<size_t>(list.size(), engine() % unsigned(c.selCount + 1)));
      // Half of the lists hold the query's own block.
      const int32_t own = int32_t(sequence.position(query) / c.selBlock);
      if (engine() % 2 && !list.empty() && std::ranges::find(list, own) == list.end())
        list[0] = own;
      std::ranges::sort(list);
      list.resize(size_t(c.selCount), -1);
      for (int64_t i = 0; i < c.selCount; ++i)
        slot(t, sequence, query, kvHead, i) = list[size_t(i)];
    });
  }

  void draw(Tensors &t, std::mt19937 &engine) const {
    for (const reference::Sequence &sequence : sequences) {
      for (int64_t query = 0; query < sequence.queries; ++query)
        t.q.draw(engine, sequence.batch, sequence.queryBegin + query);
      for (int64_t key = 0; key < sequence.keys; ++key) {
        t.k.draw(engine, sequence.keyBatch, sequence.keyBegin + key);
        t.v.draw(engine, sequence.keyBatch, sequence.keyBegin + key);
      }
    }
    drawLists(t, engine);
  }

  reference::Attention attention(Tensors &t) const {
    return {.spec = spec,
            .q = t.q.view(),
            .k = t.k.view(),
            .v = t.v.view(),
            .blockLists = reference::readBlockLists(
                sequences,
                {t.lists.words().data(), t.lists.strides()[0], t.lists.strides()[1], t.lists.strides()[2], kSlotStride},
                kKvHeads, c.selCount),
            .sequences = sequences};
  }

  // The status words that the launch left.
  std::array<int32_t, 2> operator()(Tensors &t, int32_t queryBegin = 0, int32_t queryEnd = INT32_MAX,
                                    bool wantsAll = true) const {
    std::array<int32_t, 2> status = {0, 0};
    std::vector<int64_t> listStrides = t.lists.strides();
    listStrides.push_back(kSlotStride);
    Arguments arguments;
    arguments.view("q", t.q.data(), t.q.strides()).view("k", t.k.data(), t.k.strides());
    arguments.view("v", t.v.data(), t.v.strides()).view("block_list", t.lists.data(), listStrides);
    arguments.view("out", t.out.data(), t.out.strides());
    arguments.view("lse", wantsAll ? t.lse.data() : nullptr, t.lse.strides());
    arguments.view("reads", wantsAll ? t.reads.data() : nullptr, t.reads.strides());
    arguments.view("sequences", c.isPacked() ? table.data() : nullptr, {8, 1});
    arguments.i32("seqlen_q", int32_t(c.lengths[0].queries)).i32("seqlen_k", int32_t(c.lengths[0].keys));
    arguments.i32("query_begin", queryBegin)
        .i32("query_end", queryEnd)
        .i32("query_step", kCpuChunkStep)
        .view("status", status.data(), {1});
    arguments.f32("scale_log2", float(reference::softmaxScale(spec) * 1.4426950408889634));
    // The launcher may know a larger maximum.
    kernel.run(arguments, {{"batch", int64_t(c.isPacked() ? c.lengths.size() : kBatch)},
                           {"kv_heads", kKvHeads},
                           {"max_seqlen_q", longest + 2}});
    return status;
  }

  const Case &c;
  const Spec spec;
  std::vector<reference::Sequence> sequences;
  int64_t queryRows = 0, keyRows = 0, longest = 0;

private:
  static constexpr int64_t kSlotStride = 3;

  TemplateKernel kernel;
  std::vector<int32_t> table;
};

bool sameBits(GappedTensor &a, GappedTensor &b) { return std::ranges::equal(a.words(), b.words()); }

class CpuSel : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(CpuSel, MatchesReference) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const Launch launch(c, features);
  ASSERT_FALSE(HasFailure());
  Tensors t = launch.tensors();
  launch.draw(t, engine);
  const std::array<int32_t, 2> status = launch(t);
  EXPECT_EQ(status[0], 0);

  const reference::AttentionResult expected = reference::attend(launch.attention(t));
  const double bound = c.dtype == DType::kBf16  ? 5e-3
                       : c.dtype == DType::kF16 ? 1e-3
                                                : 1e-5; // docs/specification.md 11
  double error = 0, size = 0;
  launch.forEachList([&](const reference::Sequence &sequence, int64_t query, int64_t kvHead) {
    const int64_t time = sequence.queryBegin + query, row = sequence.firstRow + query;
    ASSERT_EQ(t.reads.integer(sequence.batch, time, kvHead, 0), expected.reads[size_t(row * kKvHeads + kvHead)])
        << "query " << query;
    for (int64_t head = kvHead * c.group; head < (kvHead + 1) * c.group; ++head) {
      const double lse = expected.lse[size_t(row * launch.spec.queryHeads + head)];
      const float got = t.lse.at(sequence.batch, time, head, 0);
      ASSERT_TRUE(std::isinf(lse) ? got == lse : std::fabs(got - lse) <= 1e-3) << got << " for " << lse;
      for (int64_t column = 0; column < c.vDim; ++column) {
        const double want = expected.out[size_t((row * launch.spec.queryHeads + head) * c.vDim + column)];
        const double value = t.out.at(sequence.batch, time, head, column);
        ASSERT_FALSE(std::isnan(value)) << "query " << query << " head " << head << " column " << column;
        if (std::isinf(lse))
          ASSERT_EQ(value, 0);
        error += (value - want) * (value - want);
        size += want * want;
      }
    }
  });
  EXPECT_LE(std::sqrt(error / std::max(size, 1e-30)), bound);

  // The same bits from two launches over ranges of queries, and nothing outside of them.
  const int64_t border = std::uniform_int_distribution<int64_t>(0, launch.queryRows)(engine);
  Tensors parts = launch.tensors(), untouched = launch.tensors();
  for (auto member : {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::lists})
    (parts.*member).copyFrom(t.*member);
  launch(parts, 0, int32_t(border));
  for (const reference::Sequence &sequence : launch.sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      ASSERT_EQ(parts.reads.integer(sequence.batch, sequence.queryBegin + query, 0, 0) != GappedTensor::kUntouched,
                isLaunched(c.isPacked(), query, sequence.queries, sequence.queryBegin, 0, border))
          << "range up to " << border;
  launch(parts, int32_t(border), INT32_MAX);
  EXPECT_TRUE(sameBits(parts.out, t.out) && sameBits(parts.lse, t.lse) && sameBits(parts.reads, t.reads))
      << "border " << border;

  // Log-sum-exp and counts may be left out.
  Tensors bare = launch.tensors();
  for (auto member : {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::lists})
    (bare.*member).copyFrom(t.*member);
  launch(bare, 0, INT32_MAX, /*wantsAll=*/false);
  EXPECT_TRUE(sameBits(bare.out, t.out) && sameBits(bare.lse, untouched.lse) && sameBits(bare.reads, untouched.reads));
}

// The same bits for a query whatever stands in other queries, and in all keys that it does not attend.
TEST_P(CpuSel, LooksAtNothingElse) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const Launch launch(c, features);
  ASSERT_FALSE(HasFailure());
  Tensors t = launch.tensors();
  launch.draw(t, engine);
  launch(t);
  for (const reference::Sequence &sequence : launch.sequences) {
    if (sequence.queries == 0)
      continue;
    const int64_t query = std::uniform_int_distribution<int64_t>(0, sequence.queries - 1)(engine);
    const int64_t kvHead = engine() % kKvHeads, time = sequence.queryBegin + query;
    Tensors other = launch.tensors();
    other.lists.copyFrom(t.lists);
    for (int64_t head = kvHead * c.group; head < (kvHead + 1) * c.group; ++head)
      for (int64_t column = 0; column < c.qkDim; ++column)
        other.q.set(other.q.index(sequence.batch, time, head, column), t.q.at(sequence.batch, time, head, column));
    for (const reference::KeyRange &range : reference::allowedKeys(launch.attention(t), sequence, query, kvHead))
      for (int64_t key = sequence.keyBegin + range.begin; key < sequence.keyBegin + range.end; ++key)
        for (auto member : {&Tensors::k, &Tensors::v})
          for (int64_t column = 0; column < (t.*member).columns; ++column) {
            const int64_t index = (t.*member).index(sequence.keyBatch, key, kvHead, column);
            (other.*member).set(index, (t.*member).at(sequence.keyBatch, key, kvHead, column));
          }
    launch(other);
    for (int64_t head = kvHead * c.group; head < (kvHead + 1) * c.group; ++head) {
      for (int64_t column = 0; column < c.vDim; ++column)
        ASSERT_EQ(other.out.at(sequence.batch, time, head, column), t.out.at(sequence.batch, time, head, column))
            << "query " << query << " of " << sequence.queries << "/" << sequence.keys << " head " << head;
      ASSERT_EQ(other.lse.at(sequence.batch, time, head, 0), t.lse.at(sequence.batch, time, head, 0));
    }
  }
}

// Each break of the rules empties the list of its query, and says whose sequence it is in; other queries are served.
TEST_P(CpuSel, MalformedListsAreReportedAndEmpty) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const Launch launch(c, features);
  ASSERT_FALSE(HasFailure());
  Tensors t = launch.tensors();
  launch.draw(t, engine);
  launch(t);
  using List = std::vector<int32_t>;
  const std::pair<const char *, std::function<bool(List &, int32_t blocks)>> breaks[] = {
      {"a block that the sequence does not have",
       [](List &list, int32_t blocks) {
         list.assign(list.size(), -1);
         list[0] = blocks;
         return true;
       }},
      {"the greatest number",
       [](List &list, int32_t) {
         list.back() = INT32_MAX;
         return true;
       }},
      {"a negative number",
       [](List &list, int32_t) {
         list.back() = -2;
         return true;
       }},
      {"the least number",
       [](List &list, int32_t) {
         list.front() = INT32_MIN;
         return true;
       }},
      {"a block twice",
       [](List &list, int32_t) {
         list.assign(list.size(), -1);
         return list.size() > 1 && (list[0] = list[1] = 0, true);
       }},
      {"descending blocks",
       [](List &list, int32_t blocks) {
         list.assign(list.size(), -1);
         return list.size() > 1 && blocks > 1 && (list[0] = 1, list[1] = 0, true);
       }},
      {"a block after -1",
       [](List &list, int32_t) {
         list.assign(list.size(), -1);
         return list.size() > 1 && (list[1] = 0, true);
       }},
  };
  for (const auto &[what, makeBad] : breaks) {
    SCOPED_TRACE(what);
    int64_t place = -1;
    const reference::Sequence *broken = nullptr;
    while (!broken || broken->queries == 0)
      broken = &launch.sequences[size_t(place = int64_t(engine() % launch.sequences.size()))];
    const int64_t badQuery = int64_t(engine() % uint64_t(broken->queries)), badHead = int64_t(engine() % kKvHeads);
    List list;
    for (int64_t i = 0; i < c.selCount; ++i)
      list.push_back(launch.slot(t, *broken, badQuery, badHead, i));
    if (!makeBad(list, int32_t((broken->keys - 1) / c.selBlock + 1)))
      continue;
    Tensors bad = launch.tensors();
    for (auto member : {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::lists})
      (bad.*member).copyFrom(t.*member);
    for (int64_t i = 0; i < c.selCount; ++i)
      launch.slot(bad, *broken, badQuery, badHead, i) = list[size_t(i)];
    const std::array<int32_t, 2> status = launch(bad);
    EXPECT_EQ(status[0], 6);
    EXPECT_EQ(status[1], place);
    launch.forEachList([&](const reference::Sequence &sequence, int64_t query, int64_t kvHead) {
      const bool isBad = &sequence == broken && query == badQuery && kvHead == badHead;
      const int64_t time = sequence.queryBegin + query;
      ASSERT_EQ(bad.reads.integer(sequence.batch, time, kvHead, 0),
                isBad ? 0 : t.reads.integer(sequence.batch, time, kvHead, 0));
      for (int64_t head = kvHead * c.group; head < (kvHead + 1) * c.group; ++head) {
        ASSERT_EQ(bad.lse.at(sequence.batch, time, head, 0),
                  isBad ? -INFINITY : t.lse.at(sequence.batch, time, head, 0));
        for (int64_t column = 0; column < c.vDim; ++column)
          ASSERT_EQ(bad.out.at(sequence.batch, time, head, column),
                    isBad ? 0 : t.out.at(sequence.batch, time, head, column));
      }
    });
  }
}

constexpr DType kBf16 = DType::kBf16, kF16 = DType::kF16, kF32 = DType::kF32;

const Case kCases[] = {
    {kBf16, 16, 64, 48, 64, 4, {{40, 500}}},
    {kF32, 1, 16, 16, 16, 5, {{33, 200}}, {{"key_tile", "16"}}},
    {kF16, 3, 40, 24, 40, 6, {{20, 300}, {0, 0}, {5, 5}, {0, 40}, {30, 30}, {1, 99}}, {{"key_tile", "16"}}},
    {kF32, 2, 8, 8, 3, 64, {{50, 170}, {7, 9}}},
    {kBf16, 4, 16, 8, 8, 65, {{30, 700}}},
    {kF32, 2, 8, 8, 3, 97, {{50, 400}, {7, 9}}},
    {kF16, 3, 8, 12, 4, 128, {{40, 620}, {20, 512}}},
    {kF32, 4, 33, 7, 200, 2, {{25, 900}, {40, 40}}},
    {kBf16, 128, 16, 24, 32, 3, {{9, 100}}},
    {kF32, 37, 16, 24, 32, 3, {{9, 100}, {20, 50}}, {{"head_tile", "16"}}}, // the last program has 5 heads
    {kF32, 5, 12, 30, 1, 7, {{15, 40}}},
    {kF32, 2, 8, 8, 1 << 30, 2, {{15, 40}}, {{"key_tile", "32"}}}, // one block holds everything
    {kF32, 17, 20, 20, 50, 1, {{12, 130}, {60, 60}}},
};
INSTANTIATE_TEST_SUITE_P(Cases, CpuSel,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kCases)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuSel);

} // namespace
} // namespace nsa::test
