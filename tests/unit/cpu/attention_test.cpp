// The attention template on the CPU backend alone, against the fp64 reference: every byte that a query may not attend
// is NaN while its row is computed.
#include "runtime/base/half.h"
#include "tests/harness/seed.h"
#include "tests/reference/attention.h"
#include "tests/reference/elements.h"
#include "tests/unit/cpu/tile_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

namespace nsa::test {
namespace {

struct Case {
  DType dtype;
  int64_t group, qkDim, vDim, queries, keys, window; // window 0: dense
  int64_t queryTile, keyTile;
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << dtypeName(c.dtype) << " group " << c.group << " dims " << c.qkDim << "/" << c.vDim << " lengths " << c.queries
       << "/" << c.keys << " window " << c.window << " tiles " << c.queryTile << "x" << c.keyTile;
}

std::string templateText() {
  std::ifstream file(NSA_TEST_TEMPLATES "/tile/attention.mlir");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty());
  return text.str();
}

std::string program(const Case &c, bool packed = false) {
  const char *element = c.dtype == DType::kBf16 ? "bf16" : c.dtype == DType::kF16 ? "f16" : "f32";
  return fill(templateText(), {{"element", element},
                               {"mma_element", "f32"},
                               {"packed", packed ? "1" : "0"},
                               {"windowed", c.window ? "1" : "0"},
                               {"group", std::to_string(c.group)},
                               {"query_tile", std::to_string(c.queryTile)},
                               {"key_tile", std::to_string(c.keyTile)},
                               {"qk_dim", std::to_string(c.qkDim)},
                               {"qk_pad", std::to_string(c.qkDim)},
                               {"v_dim", std::to_string(c.vDim)},
                               {"v_pad", std::to_string(c.vDim)},
                               {"stages", "1"},
                               {"queries_shared", "0"},
                               {"warps", "1"}});
}

// time x heads x columns, between guard pages.
struct Tensor {
  Tensor(DType dtype, int64_t time, int64_t heads, int64_t columns)
      : dtype(dtype), time(time), heads(heads), columns(columns),
        memory(size_t(time * heads * columns * dtypeBytes(dtype))) {}

  void draw(std::mt19937 &engine) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < time * heads * columns; ++i)
      reference::storeElement(dtype, memory.as<std::byte>(), i, normal(engine));
  }
  void poison(int64_t row) {
    std::memset(memory.as<char>() + row * heads * columns * dtypeBytes(dtype), 0xff,
                size_t(heads * columns * dtypeBytes(dtype)));
  }
  float at(int64_t t, int64_t head, int64_t column) {
    return reference::loadElement(dtype, memory.as<std::byte>(), (t * heads + head) * columns + column);
  }
  reference::TensorView view() { return {memory.as<std::byte>(), dtype, 0, heads * columns, columns}; }
  std::vector<int64_t> strides() const { return {0, heads * columns, columns}; }

  DType dtype;
  int64_t time, heads, columns;
  GuardedBuffer memory;
};

constexpr int64_t kKvHeads = 2;

class CpuAttention : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(CpuAttention, MatchesReference) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const int64_t heads = kKvHeads * c.group;
  Tensor q(c.dtype, c.queries, heads, c.qkDim), k(c.dtype, c.keys, kKvHeads, c.qkDim),
      v(c.dtype, c.keys, kKvHeads, c.vDim);
  q.draw(engine);
  k.draw(engine);
  v.draw(engine);
  reference::Attention attention;
  attention.spec.op = c.window ? Operator::kWindow : Operator::kDense;
  attention.spec.window = int32_t(c.window);
  attention.spec.queryHeads = int32_t(heads);
  attention.spec.kvHeads = int32_t(kKvHeads);
  attention.spec.qkDim = int32_t(c.qkDim);
  attention.spec.vDim = int32_t(c.vDim);
  attention.q = q.view();
  attention.k = k.view();
  attention.v = v.view();
  attention.sequences = reference::denseSequences(1, c.queries, c.keys);
  const reference::AttentionResult expected = reference::attend(attention);

  const TileKernel kernel(program(c), features);
  auto run = [&](Tensor &out, Tensor &lse) {
    int32_t status[2] = {0, 0};
    Slots slots;
    slots.view(q.memory.as<void>(), q.strides()).view(k.memory.as<void>(), k.strides());
    slots.view(v.memory.as<void>(), v.strides()).view(out.memory.as<void>(), out.strides());
    slots.view(lse.memory.as<void>(), lse.strides()).view(nullptr, {1}).view(nullptr, {1});
    slots.i32(int32_t(c.queries)).i32(int32_t(c.keys)).i32(int32_t(c.queries)).i32(int32_t(c.keys)).i32(0).i32(0);
    slots.i32(int32_t(c.window))
        .f32(float(reference::softmaxScale(attention.spec) * 1.4426950408889634))
        .view(status, {1});
    for (int64_t x = 0; x < (c.queries * c.group + c.queryTile - 1) / c.queryTile; ++x)
      for (int64_t y = 0; y < kKvHeads; ++y)
        kernel.run(slots, int32_t(x), int32_t(y));
    EXPECT_EQ(status[0], 0);
  };

  Tensor out(c.dtype, c.queries, heads, c.vDim), lse(DType::kF32, c.queries, heads, 1);
  run(out, lse);
  const double bound = c.dtype == DType::kBf16 ? 5e-3 : c.dtype == DType::kF16 ? 1e-3 : 1e-5; // spec.md 11
  double error = 0, size = 0;
  for (int64_t row = 0; row < c.queries * heads; ++row) {
    for (int64_t j = 0; j < c.vDim; ++j) {
      const double want = expected.out[size_t(row * c.vDim + j)];
      const double got = out.at(row / heads, row % heads, j);
      ASSERT_FALSE(std::isnan(got)) << "row " << row << " column " << j;
      error += (got - want) * (got - want);
      size += want * want;
    }
    ASSERT_NEAR(lse.at(row / heads, row % heads, 0), expected.lse[size_t(row)], 1e-3);
  }
  EXPECT_LE(std::sqrt(error / size), bound);

  // The same bits for a query whatever stands in the keys that it may not attend.
  for (int64_t query : {int64_t(0), c.queries / 2, c.queries - 1}) {
    const int64_t position = c.keys - c.queries + query;
    const int64_t first = c.window ? std::max<int64_t>(0, position - c.window + 1) : 0;
    Tensor savedK(c.dtype, c.keys, kKvHeads, c.qkDim), savedV(c.dtype, c.keys, kKvHeads, c.vDim);
    std::memcpy(savedK.memory.as<char>(), k.memory.as<char>(), k.memory.size());
    std::memcpy(savedV.memory.as<char>(), v.memory.as<char>(), v.memory.size());
    for (int64_t key = 0; key < c.keys; ++key) {
      if (key >= first && key <= position)
        continue;
      k.poison(key);
      v.poison(key);
    }
    Tensor poisoned(c.dtype, c.queries, heads, c.vDim), poisonedLse(DType::kF32, c.queries, heads, 1);
    run(poisoned, poisonedLse);
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t j = 0; j < c.vDim; ++j)
        ASSERT_EQ(poisoned.at(query, head, j), out.at(query, head, j)) << "query " << query << " head " << head;
      ASSERT_EQ(poisonedLse.at(query, head, 0), lse.at(query, head, 0));
    }
    std::memcpy(k.memory.as<char>(), savedK.memory.as<char>(), k.memory.size());
    std::memcpy(v.memory.as<char>(), savedV.memory.as<char>(), v.memory.size());
  }
}

const Case kCases[] = {
    {DType::kF32, 1, 16, 16, 33, 33, 0, 16, 16},    {DType::kF32, 3, 40, 24, 21, 50, 0, 32, 16},
    {DType::kBf16, 4, 64, 64, 70, 70, 0, 64, 32},   {DType::kF16, 2, 72, 80, 37, 90, 0, 32, 64},
    {DType::kF32, 2, 33, 7, 40, 61, 1, 16, 16},     {DType::kF32, 6, 32, 32, 50, 100, 9, 32, 16},
    {DType::kBf16, 8, 128, 96, 30, 77, 20, 64, 16}, {DType::kF16, 1, 5, 3, 64, 64, 1000, 32, 32},
};
INSTANTIATE_TEST_SUITE_P(Cases, CpuAttention,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kCases)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuAttention);

// What a kernel says itself of lengths that only the device can see; the CPU device asks the host's copy before.
class CpuAttentionLengths : public testing::TestWithParam<std::string> {};

TEST_P(CpuAttentionLengths, BrokenOnesAreReportedAndTouchNothing) {
  const Case c{DType::kF32, 2, 16, 16, 40, 50, 0, 16, 16};
  const TileKernel kernel(program(c, /*packed=*/true), GetParam());
  constexpr int32_t kMaxQ = 20, kMaxK = 30;
  struct Lengths {
    std::vector<int32_t> q, k; // three sequences; the tensors hold 40 and 50 tokens
    int32_t code, place;
  };
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  const Lengths cases[] = {
      {{0, 10, 10, 30}, {0, 20, 20, 50}, 0, 0},    {{0, 0, 0, 0}, {0, 0, 0, 0}, 0, 0},
      {{1, 10, 10, 30}, {0, 20, 20, 50}, 1, 0},    {{-1, 10, 10, 30}, {0, 20, 20, 50}, 1, 0},
      {{0, 10, 10, 9}, {0, 20, 20, 50}, 1, 2},     {{0, 10, 22, 41}, {0, 20, 40, 50}, 1, 2},
      {{0, 10, 10, kMost}, {0, 20, 20, 50}, 1, 2}, {{0, 10, 10, kLeast}, {0, 20, 20, 50}, 1, 2},
      {{0, 10, 10, 30}, {2, 20, 20, 50}, 2, 0},    {{0, 10, 10, 30}, {kLeast, 20, 20, 50}, 2, 0},
      {{0, 10, 10, 10}, {0, 20, 20, 19}, 2, 2},    {{0, 10, 10, 30}, {0, 20, 20, 51}, 2, 2},
      {{0, 10, 10, 30}, {0, 20, 20, kMost}, 2, 2}, {{0, 10, 13, 30}, {0, 20, 22, 50}, 3, 1},
      {{0, 10, 10, 31}, {0, 20, 20, 50}, 4, 2},    {{0, 10, 10, 30}, {0, 10, 10, 41}, 5, 2},
  };
  const int64_t heads = kKvHeads * c.group;
  Tensor q(c.dtype, 40, heads, c.qkDim), k(c.dtype, 50, kKvHeads, c.qkDim), v(c.dtype, 50, kKvHeads, c.vDim);
  std::mt19937 engine(freshSeed());
  q.draw(engine);
  k.draw(engine);
  v.draw(engine);
  for (const Lengths &lengths : cases) {
    SCOPED_TRACE(testing::PrintToString(lengths.q) + " " + testing::PrintToString(lengths.k));
    Tensor out(c.dtype, 40, heads, c.vDim), lse(DType::kF32, 40, heads, 1);
    for (int64_t row = 0; row < 40; ++row) {
      out.poison(row);
      lse.poison(row);
    }
    int32_t status[2] = {0, 0};
    Slots slots;
    slots.view(q.memory.as<void>(), q.strides()).view(k.memory.as<void>(), k.strides());
    slots.view(v.memory.as<void>(), v.strides()).view(out.memory.as<void>(), out.strides());
    slots.view(lse.memory.as<void>(), lse.strides()).view(lengths.q.data(), {1}).view(lengths.k.data(), {1});
    slots.i32(0).i32(0).i32(kMaxQ).i32(kMaxK).i32(40).i32(50).i32(0).f32(0.36f).view(status, {1});
    for (int32_t z = 0; z < 3; ++z)
      for (int32_t y = 0; y < kKvHeads; ++y)
        for (int32_t x = 0; x < (kMaxQ * c.group + c.queryTile - 1) / c.queryTile; ++x)
          kernel.run(slots, x, y, z);
    EXPECT_EQ(status[0], lengths.code);
    EXPECT_EQ(status[1], lengths.place);
    // Rows of the sequences that are well are written, and no others.
    for (int64_t time = 0; time < 40; ++time) {
      bool isWritten = false;
      for (int32_t s = 0; s < 3; ++s)
        isWritten |= time >= lengths.q[size_t(s)] && time < lengths.q[size_t(s) + 1] &&
                     !(lengths.code != 0 && s == lengths.place);
      for (int64_t head = 0; head < heads; ++head)
        ASSERT_EQ(std::isnan(out.at(time, head, 0)) || std::isnan(lse.at(time, head, 0)), !isWritten)
            << "time " << time << " head " << head;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuAttentionLengths, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuAttentionLengths);

} // namespace
} // namespace nsa::test
