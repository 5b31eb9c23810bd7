// The sequences template on the CPU backend alone: the table that it writes, and what it says of lengths that break a
// rule. Offsets stand between guard pages, so a read past them stops the test.
#include "runtime/base/sequence_fields.h"
#include "tests/harness/seed.h"
#include "tests/unit/cpu/template_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

namespace nsa::test {
namespace {

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
using Row = std::array<int32_t, kSequenceFields>;

struct Offsets {
  std::vector<int32_t> q, k;
  int32_t totalQ, totalK, totalC, maxQ, maxK;
  std::vector<int32_t> firstKeys = {}; // the positions of the sequences' first keys; empty: absent
};

struct Table {
  std::vector<Row> rows;
  std::vector<int32_t> codes; // of each sequence's own program
};

class SequencesKernel {
public:
  SequencesKernel(int32_t block, int32_t stride, const std::string &features, bool keyOffset = false)
      : kernel("tile/sequences.tile", Operator::kSequences, fixedOf(block, stride, keyOffset), {}, features) {}

  Table run(const Offsets &offsets) const {
    const size_t batch = offsets.q.size() - 1;
    GuardedBuffer q(4 * (batch + 1)), k(4 * (batch + 1));
    std::copy(offsets.q.begin(), offsets.q.end(), q.as<int32_t>());
    std::copy(offsets.k.begin(), offsets.k.end(), k.as<int32_t>());
    GuardedBuffer firstKeys(4 * offsets.firstKeys.size());
    std::copy(offsets.firstKeys.begin(), offsets.firstKeys.end(), firstKeys.as<int32_t>());
    Table table;
    table.rows.resize(batch);
    GuardedBuffer rows(batch * sizeof(Row));
    for (size_t sequence = 0; sequence < batch; ++sequence) {
      int32_t status[2] = {0, -1};
      Arguments arguments;
      arguments.view("cu_seqlens_q", q.as<void>(), {1}).view("cu_seqlens_k", k.as<void>(), {1});
      arguments.i32("total_q", offsets.totalQ).i32("total_k", offsets.totalK).i32("total_c", offsets.totalC);
      arguments.i32("max_seqlen_q", offsets.maxQ).i32("max_seqlen_k", offsets.maxK);
      arguments.view("sequences", rows.as<void>(), {kSequenceFields, 1}).view("status", status, {1});
      if (!offsets.firstKeys.empty()) // only then the kernel has the argument
        arguments.view("k_offset", firstKeys.as<void>(), {1});
      kernel.program().run(kernel.slots(arguments), int32_t(sequence));
      table.codes.push_back(status[0]);
      EXPECT_EQ(status[1], status[0] ? int32_t(sequence) : -1);
    }
    std::memcpy(table.rows.data(), rows.as<void>(), rows.size());
    return table;
  }

private:
  static TemplateKernel::Pairs fixedOf(int32_t block, int32_t stride, bool keyOffset) {
    TemplateKernel::Pairs fixed = {
        {"dtype", "fp32"}, {"cmp_block", std::to_string(block)}, {"cmp_stride", std::to_string(stride)}};
    if (keyOffset)
      fixed.emplace("key_offset", "1");
    return fixed;
  }

  TemplateKernel kernel;
};

int64_t blocksOf(int64_t tokens, int64_t block, int64_t stride) {
  return tokens < block ? 0 : (tokens - block) / stride + 1;
}

class CpuSequences : public testing::TestWithParam<std::string> {};

TEST_P(CpuSequences, WellFormedOnesAreFoundAndTheirBlocksCounted) {
  std::mt19937 engine(freshSeed());
  for (const auto &[block, stride] : {std::pair{32, 16}, {4, 4}, {6, 2}, {7, 1}, {1, 1}}) {
    const SequencesKernel kernel(block, stride, GetParam());
    for (int32_t batch : {1, 2, 37}) {
      Offsets offsets = {{0}, {0}, 0, 0, kMost, kMost, kMost};
      std::uniform_int_distribution<int32_t> length(0, 90), isEmpty(0, 3);
      for (int32_t i = 0; i < batch; ++i) {
        const int32_t keys = isEmpty(engine) == 0 ? 0 : length(engine);
        const int32_t queries = std::uniform_int_distribution<int32_t>(0, keys)(engine);
        offsets.q.push_back(offsets.q.back() + queries);
        offsets.k.push_back(offsets.k.back() + keys);
      }
      offsets.totalQ = offsets.q.back();
      offsets.totalK = offsets.k.back() + batch % 2 * 5; // rows that no sequence has
      const Table table = kernel.run(offsets);
      int64_t blocks = 0;
      for (size_t i = 0; i < size_t(batch); ++i) {
        const int32_t keys = offsets.k[i + 1] - offsets.k[i];
        const int64_t own = blocksOf(keys, block, stride);
        const Row expected = {
            offsets.q[i], offsets.q[i + 1] - offsets.q[i], offsets.k[i], keys, int32_t(blocks), int32_t(own), 0, 0};
        EXPECT_EQ(table.rows[i], expected) << "blocks of " << block << "/" << stride << ", sequence " << i;
        EXPECT_EQ(table.codes[i], 0);
        blocks += own;
      }
    }
  }
}

// Three sequences; the tensors hold 40 and 50 tokens, and a sequence may have 20 queries and 30 keys.
TEST_P(CpuSequences, BrokenRulesAreReportedAndLeaveAnEmptyRow) {
  struct Case {
    std::vector<int32_t> q, k;
    std::array<int32_t, 3> codes;
  };
  const Case cases[] = {
      {{0, 10, 10, 30}, {0, 20, 20, 50}, {0, 0, 0}},       {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0}},
      {{1, 10, 10, 30}, {0, 20, 20, 50}, {1, 0, 0}},       {{-1, 10, 10, 30}, {0, 20, 20, 50}, {1, 0, 0}},
      {{kLeast, 10, 10, 30}, {0, 20, 20, 50}, {1, 0, 0}},  {{0, 10, 10, 9}, {0, 20, 20, 50}, {0, 0, 1}},
      {{0, 10, 22, 41}, {0, 20, 40, 50}, {0, 0, 1}},       {{0, 10, 10, kMost}, {0, 20, 20, 50}, {0, 0, 1}},
      {{0, 10, 10, kLeast}, {0, 20, 20, 50}, {0, 0, 1}},   {{0, 10, 45, 30}, {0, 20, 20, 50}, {0, 1, 1}},
      {{0, 10, -5, 10}, {0, 20, 20, 40}, {0, 1, 1}},       {{0, 10, 10, 30}, {2, 20, 20, 50}, {2, 0, 0}},
      {{0, 10, 10, 30}, {kLeast, 20, 20, 50}, {2, 0, 0}},  {{0, 10, 10, 10}, {0, 20, 20, 19}, {0, 0, 2}},
      {{0, 10, 10, 30}, {0, 20, 20, 51}, {0, 0, 2}},       {{0, 10, 10, 30}, {0, 20, 20, kMost}, {0, 0, 2}},
      {{0, 10, 10, 30}, {0, 20, kLeast, 50}, {0, 2, 2}},   {{0, 10, 13, 30}, {0, 20, 22, 50}, {0, 3, 0}},
      {{0, 10, 10, 31}, {0, 20, 20, 50}, {0, 0, 4}},       {{0, 10, 10, 30}, {0, 10, 10, 41}, {0, 0, 5}},
      {{0, 10, 10, 40}, {0, 20, 20, 51}, {0, 0, 2}},       {{0, 10, 8, 31}, {0, 20, 19, 50}, {0, 1, 4}},
      {{9, kMost, 10, 20}, {9, kLeast, 0, 20}, {1, 1, 0}},
  };
  constexpr int32_t kBlock = 4, kStride = 2;
  const SequencesKernel kernel(kBlock, kStride, GetParam());
  for (const Case &c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.q) + " " + testing::PrintToString(c.k));
    const Table table = kernel.run({c.q, c.k, 40, 50, kMost, 20, 30});
    int64_t blocks = 0;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(table.codes[i], c.codes[i]) << "sequence " << i;
      Row expected = {};
      if (c.codes[i] == 0) {
        const int32_t keys = c.k[i + 1] - c.k[i];
        const int64_t own = blocksOf(keys, kBlock, kStride);
        expected = {c.q[i], c.q[i + 1] - c.q[i], c.k[i], keys, int32_t(blocks), int32_t(own), 0, 0};
        blocks += own;
      }
      EXPECT_EQ(table.rows[i], expected) << "sequence " << i;
    }
  }
}

// Where keys lie that do not begin at position 0, and offsets that are too great or that split a block. Blocks of a
// sequence whose offset breaks the rule still stand before those of the next.
TEST_P(CpuSequences, OffsetsOfKeysAreTabulatedAndChecked) {
  constexpr int32_t kFar = 1 << 30;
  struct Case {
    std::vector<int32_t> firstKeys;
    std::array<int32_t, 3> codes, codesOfTokens; // in blocks of 4 every 2, and of 1 every 1
  };
  const Case cases[] = {
      {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
      {{2, -4, 1000}, {0, 0, 0}, {0, 0, 0}},
      {{1, -3, 7}, {11, 11, 11}, {0, 0, 0}},
      {{kFar, -kFar, 6}, {0, 0, 0}, {0, 0, 0}},
      {{kFar + 2, -kFar - 2, kFar + 1}, {11, 11, 11}, {11, 11, 11}},
      {{kMost, kLeast, 2}, {11, 11, 0}, {11, 11, 0}},
  };
  for (const auto &[block, stride] : {std::pair{4, 2}, {1, 1}}) {
    const SequencesKernel kernel(block, stride, GetParam(), /*keyOffset=*/true);
    for (const Case &c : cases) {
      SCOPED_TRACE(testing::PrintToString(c.firstKeys) + " in blocks of " + std::to_string(block));
      const Offsets offsets = {{0, 10, 10, 30}, {0, 20, 25, 50}, 30, 50, kMost, 20, 30, c.firstKeys};
      const Table table = kernel.run(offsets);
      int64_t blocks = 0;
      for (size_t i = 0; i < 3; ++i) {
        const int32_t keys = offsets.k[i + 1] - offsets.k[i];
        const int64_t own = blocksOf(keys, block, stride);
        Row expected = {offsets.q[i],    offsets.q[i + 1] - offsets.q[i],
                        offsets.k[i],    keys,
                        int32_t(blocks), int32_t(own),
                        c.firstKeys[i],  0};
        const int32_t code = block == 1 ? c.codesOfTokens[i] : c.codes[i];
        EXPECT_EQ(table.codes[i], code) << "sequence " << i;
        EXPECT_EQ(table.rows[i], code ? Row{} : expected) << "sequence " << i;
        blocks += own;
      }
    }
    // Lengths that break a rule are reported before an offset that does.
    EXPECT_EQ(kernel.run({{0, 10}, {0, 5}, 10, 5, kMost, 20, 30, {kMost}}).codes, (std::vector<int32_t>{3}));
  }
}

// Keys that fit, but make more blocks than the compressed tensors have rows.
TEST_P(CpuSequences, BlocksBeyondTheirTensorAreReported) {
  for (const auto &[block, stride] : {std::pair{4, 2}, {1, 1}}) {
    const SequencesKernel kernel(block, stride, GetParam());
    Offsets offsets = {{0, 0, 0, 0, 0}, {0, 20, 45, 50, 80}, 0, 80, 0, 0, 30};
    std::array<int32_t, 4> own;
    for (size_t i = 0; i < 4; ++i)
      own[i] = int32_t(blocksOf(offsets.k[i + 1] - offsets.k[i], block, stride));
    // All fit exactly; then the last, the second and the first sequence is the one with a block too many.
    const int32_t all = own[0] + own[1] + own[2] + own[3];
    offsets.totalC = all;
    EXPECT_EQ(kernel.run(offsets).codes, (std::vector<int32_t>{0, 0, 0, 0}));
    offsets.totalC = all - 1;
    Table table = kernel.run(offsets);
    EXPECT_EQ(table.codes, (std::vector<int32_t>{0, 0, 0, 7}));
    EXPECT_EQ(table.rows[3], Row{});
    EXPECT_EQ(table.rows[2][4], own[0] + own[1]);
    offsets.totalC = own[0] - 1;
    table = kernel.run(offsets);
    EXPECT_EQ(table.codes[0], 7);
    EXPECT_EQ(table.codes[1], 7);
  }
}

// Sequences that are well-formed alone, but lie over each other among malformed ones: no sum overflows, and no more
// blocks stand before a sequence than as many of the longest could have.
TEST_P(CpuSequences, BlocksStayInRangeAfterMalformedSequences) {
  for (const auto &[block, stride] : {std::pair{32, 16}, {3, 1}, {1, 1}}) {
    const SequencesKernel kernel(block, stride, GetParam());
    for (int32_t keys : {100, kMost}) {
      Offsets offsets = {{}, {}, 0, keys, kMost, kMost, keys};
      for (int32_t i = 0; i < 9; ++i) {
        offsets.q.push_back(0);
        offsets.k.push_back(i % 2 ? keys - (i == 7 ? 40 : 0) : 0);
      }
      const Table table = kernel.run(offsets);
      int64_t before = 0;
      for (size_t i = 0; i < 8; ++i) {
        const int64_t own = i % 2 ? 0 : blocksOf(offsets.k[i + 1], block, stride);
        const int64_t begin = table.rows[i][4], length = table.rows[i][5];
        if (i % 2 == 1) {
          EXPECT_EQ(table.codes[i], 2);
        } else if (block > 1) {
          EXPECT_EQ(table.codes[i], before + own > kMost ? 7 : 0) << "sequence " << i;
        }
        EXPECT_EQ(length, table.codes[i] ? 0 : own);
        if (table.codes[i] == 0)
          EXPECT_EQ(begin, block > 1 ? before : 0) << "sequence " << i;
        before += length;
      }
    }
  }
  // Unsummed, where a sequence before was too long.
  const SequencesKernel kernel(1, 1, GetParam());
  const Table table = kernel.run({{0, 0, 0, 0}, {0, 70, 80, 90}, 0, 100, kMost, kMost, 30});
  EXPECT_EQ(table.codes, (std::vector<int32_t>{5, 0, 0}));
  EXPECT_EQ(table.rows[1], (Row{0, 0, 70, 10, 30, 10, 0, 0}));
  EXPECT_EQ(table.rows[2], (Row{0, 0, 80, 10, 60, 10, 0, 0}));
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuSequences, testing::ValuesIn(runnableFeatures()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuSequences);

} // namespace
} // namespace nsa::test
