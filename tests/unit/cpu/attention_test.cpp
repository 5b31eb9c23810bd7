// The attention template on the CPU backend alone, against the fp64 reference: every byte that a query may not attend
// is NaN while its row is computed.
#include "runtime/base/sequence_fields.h"
#include "tests/harness/seed.h"
#include "tests/unit/cpu/guarded_tensor.h"
#include "tests/unit/cpu/launched_queries.h"
#include "tests/unit/cpu/template_kernel.h"
#include "tools/reference/attention.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace nsa::test {
namespace {

constexpr int64_t kKvHeads = 2;
constexpr int32_t kAll = std::numeric_limits<int32_t>::max();

struct Case {
  Operator op;
  DType dtype;
  int64_t group, qkDim, vDim, queries, keys;
  int32_t window, block, stride; // by operator
  int64_t queryTile, keyTile;
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << operatorName(c.op) << " " << dtypeName(c.dtype) << " group " << c.group << " dims " << c.qkDim << "/"
       << c.vDim << " lengths " << c.queries << "/" << c.keys << " window " << c.window << " blocks " << c.block << "/"
       << c.stride << " tiles " << c.queryTile << "x" << c.keyTile;
}

Spec specOf(const Case &c) {
  Spec spec;
  spec.op = c.op;
  spec.dtype = c.dtype;
  spec.queryHeads = int32_t(kKvHeads * c.group);
  spec.kvHeads = kKvHeads;
  spec.qkDim = int32_t(c.qkDim);
  spec.vDim = int32_t(c.vDim);
  spec.window = c.window;
  spec.cmpBlock = c.block;
  spec.cmpStride = c.stride;
  return spec;
}

TemplateKernel compile(const Case &c, bool packed, const std::string &features, bool keyOffset = false) {
  std::map<std::string, std::string> fixed = {{"dtype", std::string(dtypeName(c.dtype))},
                                              {"group", std::to_string(c.group)},
                                              {"many_queries", "1"},
                                              {"packed", packed ? "1" : "0"},
                                              {"page_size", "0"},
                                              {"qk_dim", std::to_string(c.qkDim)},
                                              {"v_dim", std::to_string(c.vDim)}};
  if (keyOffset)
    fixed.emplace("key_offset", "1");
  if (c.op == Operator::kCmp)
    fixed.insert({{"cmp_block", std::to_string(c.block)}, {"cmp_stride", std::to_string(c.stride)}});
  return {"tile/attention.tile",
          c.op,
          fixed,
          {{"query_tile", std::to_string(c.queryTile)}, {"key_tile", std::to_string(c.keyTile)}},
          features};
}

reference::TensorView viewOf(GuardedTensor &tensor, int64_t batchStride) {
  return {.data = tensor.memory.as<std::byte>(),
          .dtype = tensor.dtype,
          .batchStride = batchStride,
          .timeStride = tensor.heads * tensor.columns,
          .headStride = tensor.columns};
}

// Inputs, outputs and the launches of one case. `keyRows` are the rows of k and v, compressed ones for cmp.
struct Problem {
  Problem(const Case &c, int64_t queryRows, int64_t keyRows, std::mt19937 &engine)
      : c(c), heads(kKvHeads * c.group), q(c.dtype, 1, queryRows, heads, c.qkDim),
        k(c.dtype, 1, keyRows, kKvHeads, c.qkDim), v(c.dtype, 1, keyRows, kKvHeads, c.vDim),
        out(c.dtype, 1, queryRows, heads, c.vDim), lse(DType::kF32, 1, queryRows, heads, 1),
        reads(1, queryRows, kKvHeads) {
    q.draw(engine);
    k.draw(engine);
    v.draw(engine);
  }

  reference::Attention reference() {
    reference::Attention attention;
    attention.spec = specOf(c);
    attention.q = viewOf(q, 0);
    attention.k = viewOf(k, 0);
    attention.v = viewOf(v, 0);
    return attention;
  }

  // `table`: of a packed batch; dense is one sequence. Outputs are fresh.
  void run(const TemplateKernel &kernel, const std::vector<SequenceRecord> &table = {}, int32_t begin = 0,
           int32_t end = kAll) {
    for (GuardedBuffer *memory : {&out.memory, &lse.memory, &reads.memory})
      std::memset(memory->as<void>(), 0xff, memory->size());
    Arguments arguments;
    for (const auto &[name, tensor] : {std::pair("q", &q), {"k", &k}, {"v", &v}, {"out", &out}, {"lse", &lse}})
      arguments.view(name, tensor->memory.as<void>(), tensor->strides());
    arguments.view("reads", reads.memory.as<void>(), reads.strides());
    arguments.view("sequences", table.empty() ? nullptr : table.data(), {kSequenceFields, 1});
    const bool packed = !table.empty();
    arguments.i32("seqlen_q", packed ? -7 : int32_t(c.queries)).i32("seqlen_k", packed ? -7 : int32_t(c.keys));
    arguments.i32("query_begin", begin).i32("query_end", end).i32("query_step", kCpuChunkStep).i32("window", c.window);
    arguments.f32("scale_log2", float(reference::softmaxScale(specOf(c)) * 1.4426950408889634));
    if (firstKey) // only then the kernel has these arguments
      arguments.view("k_offset", &*firstKey, {1}).view("status", status, {1});
    kernel.run(arguments, {{"max_seqlen_q", q.time}, {"kv_heads", kKvHeads}, {"batch", packed ? table.size() : 1}});
  }

  // Expects in the rows of `written` what the reference says, and that all other rows were not touched.
  void expectRight(const reference::AttentionResult &expected, const std::vector<bool> &written) {
    const double bound = c.dtype == DType::kBf16  ? 5e-3
                         : c.dtype == DType::kF16 ? 1e-3
                                                  : 1e-5; // docs/specification.md 11
    double error = 0, size = 0;
    for (int64_t time = 0; time < q.time; ++time)
      for (int64_t head = 0; head < heads; ++head) {
        SCOPED_TRACE(testing::Message() << "time " << time << " head " << head);
        const float gotLse = lse.at(0, time, head, 0);
        const int32_t gotReads = reads.at(0, time, head / c.group);
        if (!written[size_t(time)]) {
          ASSERT_TRUE(std::isnan(gotLse) && std::isnan(out.at(0, time, head, 0)));
          ASSERT_EQ(gotReads, -1);
          continue;
        }
        ASSERT_EQ(gotReads, expected.reads[size_t(time * kKvHeads + head / c.group)]);
        const double wantLse = expected.lse[size_t(time * heads + head)];
        if (std::isinf(wantLse))
          ASSERT_EQ(gotLse, wantLse);
        else
          ASSERT_NEAR(gotLse, wantLse, 1e-3);
        for (int64_t j = 0; j < c.vDim; ++j) {
          const double want = expected.out[size_t((time * heads + head) * c.vDim + j)];
          const double got = out.at(0, time, head, j);
          ASSERT_FALSE(std::isnan(got));
          if (gotReads == 0)
            ASSERT_EQ(got, 0);
          error += (got - want) * (got - want);
          size += want * want;
        }
      }
    EXPECT_LE(std::sqrt(error), bound * std::sqrt(size));
  }

  Case c;
  std::optional<int32_t> firstKey{}; // the position of the dense sequence's first key
  int32_t status[2] = {0, -1};
  int64_t heads;
  GuardedTensor q, k, v, out, lse;
  GuardedCounts reads;
};

class CpuAttention : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(CpuAttention, MatchesReference) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  Problem problem(c, c.queries, c.op == Operator::kCmp ? specOf(c).compressedBlocks(c.keys) : c.keys, engine);
  reference::Attention attention = problem.reference();
  attention.sequences = reference::denseSequences(1, c.queries, c.keys);
  const reference::AttentionResult expected = reference::attend(attention);
  const TemplateKernel kernel = compile(c, /*packed=*/false, features);

  // In launches of some of the queries: in front of them, a part, and none.
  const int32_t third = int32_t(c.queries / 3);
  for (const auto &[begin, end] :
       {std::pair<int32_t, int32_t>{third, 2 * third + 1}, {2 * third, kAll}, {third, third}}) {
    problem.run(kernel, {}, begin, end);
    std::vector<bool> written(size_t(c.queries));
    for (int64_t query = begin; query < std::min<int64_t>(end, c.queries); ++query)
      written[size_t(query)] = true;
    problem.expectRight(expected, written);
  }
  problem.run(kernel);
  problem.expectRight(expected, std::vector<bool>(size_t(c.queries), true));

  // The same bits for a query whatever stands in the keys that it may not attend.
  std::vector<char> savedOut(problem.out.memory.size()), savedLse(problem.lse.memory.size());
  std::memcpy(savedOut.data(), problem.out.memory.as<void>(), savedOut.size());
  std::memcpy(savedLse.data(), problem.lse.memory.as<void>(), savedLse.size());
  const size_t outBytes = savedOut.size() / size_t(c.queries), lseBytes = savedLse.size() / size_t(c.queries);
  for (int64_t query : {int64_t(0), c.queries / 2, c.queries - 1}) {
    Problem poisoned(c, c.queries, problem.k.time, engine);
    for (auto [to, from] : {std::pair{&poisoned.q, &problem.q}, {&poisoned.k, &problem.k}, {&poisoned.v, &problem.v}})
      std::memcpy(to->memory.as<void>(), from->memory.as<void>(), from->memory.size());
    std::vector<bool> allowed(size_t(problem.k.time));
    for (const reference::KeyRange &range : reference::allowedKeys(attention, attention.sequences[0], query, 0))
      for (int64_t key = range.begin; key < range.end; ++key)
        allowed[size_t(key)] = true;
    for (int64_t key = 0; key < problem.k.time; ++key)
      if (!allowed[size_t(key)]) {
        poisoned.k.poison(key);
        poisoned.v.poison(key);
      }
    poisoned.run(kernel);
    EXPECT_EQ(std::memcmp(poisoned.out.memory.as<char>() + size_t(query) * outBytes,
                          savedOut.data() + size_t(query) * outBytes, outBytes),
              0)
        << "query " << query;
    EXPECT_EQ(std::memcmp(poisoned.lse.memory.as<char>() + size_t(query) * lseBytes,
                          savedLse.data() + size_t(query) * lseBytes, lseBytes),
              0)
        << "query " << query;
  }
}

// Keys that do not begin at position 0: before all queries, among them, and behind them. Nothing behind the last key is
// read, and the kernel of a packed batch, which finds the offset in its table, gives the same bits.
TEST_P(CpuAttention, KeysBeginWhereTheOffsetSays) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  Problem problem(c, c.queries, c.op == Operator::kCmp ? specOf(c).compressedBlocks(c.keys) : c.keys, engine);
  reference::Attention attention = problem.reference();
  attention.sequences = reference::denseSequences(1, c.queries, c.keys);
  const TemplateKernel kernel = compile(c, /*packed=*/false, features, /*keyOffset=*/true);
  const TemplateKernel packedKernel = compile(c, /*packed=*/true, features, /*keyOffset=*/true);
  const int32_t step = c.op == Operator::kCmp ? c.stride : 1;
  const auto blocks = int32_t(specOf(c).compressedBlocks(c.keys));
  for (const int64_t tokens : {-c.keys, -c.keys / 2, int64_t(-step), int64_t(0), int64_t(step), c.keys / 2,
                               c.keys - c.queries / 2, 2 * c.keys, int64_t{1} << 30, -(int64_t{1} << 30)}) {
    const auto offset = int32_t(tokens / step * step);
    SCOPED_TRACE(testing::Message() << "offset " << offset);
    attention.sequences[0].keyOffset = offset;
    const reference::AttentionResult expected = reference::attend(attention);
    const std::vector<bool> written(size_t(c.queries), true);
    problem.firstKey = offset;
    problem.run(kernel);
    problem.expectRight(expected, written);
    problem.firstKey.reset();
    SequenceRecord record;
    record.fields = {0, int32_t(c.queries), 0, int32_t(c.keys), 0, blocks, offset, 0};
    problem.run(packedKernel, {record});
    problem.expectRight(expected, written);
    EXPECT_EQ(problem.status[0], 0);
  }
}

// An offset that breaks a rule leaves all outputs alone and is reported.
TEST_P(CpuAttention, AMalformedOffsetIsReported) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  Problem problem(c, c.queries, c.op == Operator::kCmp ? specOf(c).compressedBlocks(c.keys) : c.keys, engine);
  const TemplateKernel kernel = compile(c, /*packed=*/false, features, /*keyOffset=*/true);
  const bool splits = c.op == Operator::kCmp && c.stride > 1;
  constexpr int32_t kFar = 1 << 30;
  for (const int32_t offset : {kFar + 64, -kFar - 64, kAll, std::numeric_limits<int32_t>::min(), 1, -1}) {
    SCOPED_TRACE(testing::Message() << "offset " << offset);
    if (std::abs(offset) == 1 && !splits)
      continue;
    problem.firstKey = offset;
    problem.status[0] = 0;
    problem.status[1] = -1;
    problem.run(kernel);
    problem.expectRight({}, std::vector<bool>(size_t(c.queries), false));
    EXPECT_EQ(problem.status[0], 11);
    EXPECT_EQ(problem.status[1], 0);
  }
}

constexpr Operator kDense = Operator::kDense, kWindow = Operator::kWindow, kCmp = Operator::kCmp;
constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBf16 = DType::kBf16;
const Case kCases[] = {
    {kDense, kF32, 1, 16, 16, 33, 33, 0, 0, 0, 16, 16},     {kDense, kF32, 3, 40, 24, 21, 50, 0, 0, 0, 32, 16},
    {kDense, kBf16, 4, 64, 64, 70, 70, 0, 0, 0, 64, 32},    {kDense, kF16, 2, 72, 80, 37, 90, 0, 0, 0, 32, 64},
    {kWindow, kF32, 2, 33, 7, 40, 61, 1, 0, 0, 16, 16},     {kWindow, kF32, 6, 32, 32, 50, 100, 9, 0, 0, 32, 16},
    {kWindow, kBf16, 8, 128, 96, 30, 77, 20, 0, 0, 64, 16}, {kWindow, kF16, 1, 5, 3, 64, 64, 1000, 0, 0, 32, 32},
    {kCmp, kF32, 2, 16, 24, 300, 300, 0, 32, 16, 16, 16},   {kCmp, kBf16, 4, 64, 64, 70, 90, 0, 8, 4, 64, 16},
    {kCmp, kF16, 3, 40, 8, 66, 66, 0, 6, 2, 32, 16},        {kCmp, kF32, 5, 7, 33, 40, 75, 0, 5, 5, 16, 16},
    {kCmp, kF32, 1, 16, 16, 50, 64, 0, 7, 1, 32, 32},       {kCmp, kF32, 16, 32, 32, 20, 40, 0, 41, 1, 16, 16},
    {kCmp, kF32, 2, 8, 8, 45, 60, 0, 1, 1, 32, 16},
};
INSTANTIATE_TEST_SUITE_P(Cases, CpuAttention,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kCases)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuAttention);

// A packed batch as its table describes it: sequences without queries, without keys, with keys that begin elsewhere,
// and one that was malformed, whose row is zero and whose tensors must not be touched.
class CpuAttentionPacked : public testing::TestWithParam<std::tuple<std::string, Operator>> {};

TEST_P(CpuAttentionPacked, FollowsTheTable) {
  const auto &[features, op] = GetParam();
  Case c{op, kF32, 3, 16, 24, 0, 0, 11, 6, 2, 16, 16};
  const Spec spec = specOf(c);
  const std::vector<int32_t> q = {0, 23, 23, 35, 35, 40, 240}, k = {0, 30, 47, 59, 59, 70, 310};
  constexpr size_t kMalformed = 4;
  std::vector<reference::Sequence> sequences = reference::packedSequences(q, k, spec);
  sequences[0].keyOffset = -8;
  sequences[5].keyOffset = 30;
  std::vector<SequenceRecord> table;
  for (const reference::Sequence &s : sequences)
    table.push_back({{int32_t(s.queryBegin), int32_t(s.queries), int32_t(s.keyBegin), int32_t(s.keys),
                      int32_t(s.blockBegin), int32_t(spec.compressedBlocks(s.keys)), int32_t(s.keyOffset), 0}});
  table[kMalformed] = {};

  SequenceRecord &last = table.back();
  std::mt19937 engine(freshSeed());
  Problem problem(c, q.back(), op == kCmp ? last[SequenceField::kCBegin] + last[SequenceField::kCLength] : k.back(),
                  engine);
  reference::Attention attention = problem.reference();
  attention.sequences = sequences;
  const reference::AttentionResult expected = reference::attend(attention);
  const TemplateKernel kernel = compile(c, /*packed=*/true, features, /*keyOffset=*/true);
  // The range counts rows of the packed tensor, and each sequence has whole tiles in it.
  for (const auto &[begin, end] :
       {std::pair<int32_t, int32_t>{0, kAll}, {7, 50}, {23, 24}, {39, 41}, {50, 168}, {41, 169}, {169, kAll}}) {
    problem.run(kernel, table, begin, end);
    std::vector<bool> written(size_t(q.back()));
    for (size_t s = 0; s < sequences.size(); ++s)
      for (int32_t row = q[s]; row < q[s + 1]; ++row)
        written[size_t(row)] =
            s != kMalformed && isLaunched(/*isPacked=*/true, row - q[s], q[s + 1] - q[s], q[s], begin, end);
    problem.expectRight(expected, written);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CpuAttentionPacked,
                         testing::Combine(testing::ValuesIn(runnableFeatures()),
                                          testing::Values(kDense, kWindow, kCmp)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuAttentionPacked);

} // namespace
} // namespace nsa::test
