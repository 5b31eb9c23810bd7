// The combine template on the CPU backend alone, against the sum in double: every kind of gate, any subset of branches,
// both layouts, ranges of queries, and what NaN does.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/guarded_tensor.h"
#include "tests/unit/cpu/launched_queries.h"
#include "tests/unit/cpu/template_kernel.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>

namespace nsa::test {
namespace {

constexpr int64_t kKvHeads = 2;
constexpr int32_t kAll = std::numeric_limits<int32_t>::max();

struct Case {
  DType dtype;
  const char *gate;
  bool perGroup;
  int branches; // bits: cmp, sel, win
  int64_t group, vDim;
  int rowTile, columnTile;
  bool packed;
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << dtypeName(c.dtype) << " " << c.gate << (c.perGroup ? " per group" : " per head") << " branches " << c.branches
       << " group " << c.group << " v_dim " << c.vDim << " tile " << c.rowTile << "x" << c.columnTile
       << (c.packed ? " packed" : " dense");
}

TemplateKernel compile(const Case &c, const std::string &features) {
  return {"tile/combine.tile",
          Operator::kCombine,
          {{"dtype", std::string(dtypeName(c.dtype))},
           {"v_dim", std::to_string(c.vDim)},
           {"group", std::to_string(c.group)},
           {"packed", c.packed ? "1" : "0"},
           {"gate", c.gate},
           {"gate_per_group", c.perGroup ? "1" : "0"}},
          {{"row_tile", std::to_string(c.rowTile)}, {"column_tile", std::to_string(c.columnTile)}},
          features};
}

struct Sequence {
  int32_t begin, length; // of the packed tensor; dense: 0 and the length
};

// Two sequences: the entries of a dense batch, or 20 and 17 of the 40 rows of a packed one.
struct Problem {
  explicit Problem(const Case &c)
      : c(c), entries(c.packed ? 1 : 2), time(c.packed ? 40 : 19), heads(kKvHeads * c.group),
        gates(c.dtype, entries, time, c.perGroup ? kKvHeads : heads, 3), out(c.dtype, entries, time, heads, c.vDim),
        reads(entries, time, kKvHeads) {
    if (c.packed)
      sequences = {Sequence{0, 20}, Sequence{20, 17}};
    else
      sequences = {Sequence{0, 19}, Sequence{0, 19}};
    for (int b = 0; b < 3; ++b) {
      branches[b] = std::make_unique<GuardedTensor>(c.dtype, entries, time, heads, c.vDim);
      branchReads[b] = std::make_unique<GuardedCounts>(entries, time, kKvHeads);
    }
  }

  void draw(std::mt19937 &engine) {
    gates.draw(engine);
    std::uniform_int_distribution<int32_t> count(0, 5000);
    for (int b = 0; b < 3; ++b) {
      branches[b]->draw(engine);
      for (int64_t i = 0; i < entries * time * kKvHeads; ++i)
        branchReads[b]->memory.as<int32_t>()[i] = count(engine);
    }
  }

  // One launch over the queries at [begin, end). Outputs are fresh. Packed tensors without a table are one sequence.
  void run(const TemplateKernel &kernel, int32_t begin = 0, int32_t end = kAll, bool wantsReads = true,
           bool hasTable = true) {
    std::memset(out.memory.as<void>(), 0xff, out.memory.size());
    std::memset(reads.memory.as<void>(), 0xff, reads.memory.size());
    int32_t table[2][8] = {};
    for (int i = 0; i < 2; ++i) {
      table[i][0] = sequences[i].begin;
      table[i][1] = sequences[i].length;
    }
    Arguments arguments;
    constexpr const char *kNames[] = {"cmp", "sel", "win"};
    for (int b = 0; b < 3; ++b) {
      const std::string name = kNames[b];
      arguments.view("o_" + name, has(b) ? branches[b]->memory.as<void>() : nullptr, branches[b]->strides());
      arguments.view("reads_" + name, has(b) ? branchReads[b]->memory.as<void>() : nullptr, branchReads[b]->strides());
    }
    arguments.view("gates", gates.memory.as<void>(), gates.strides(4))
        .view("out", out.memory.as<void>(), out.strides());
    arguments.view("reads", wantsReads ? reads.memory.as<void>() : nullptr, reads.strides());
    arguments.view("sequences", c.packed && hasTable ? table : nullptr, {8, 1});
    arguments.i32("seqlen_q", c.packed ? -1 : 19).i32("total_q", c.packed ? 40 : -1);
    arguments.i32("seqlen_k", -1).i32("query_begin", begin).i32("query_end", end).i32("query_step", kCpuChunkStep);
    kernel.run(arguments,
               {{"max_seqlen_q", hasTable ? 20 : time}, {"kv_heads", kKvHeads}, {"batch", hasTable ? 2 : 1}});
  }

  bool has(int branch) const { return (c.branches >> branch & 1) != 0; }

  std::array<double, 3> gatesAt(int64_t entry, int64_t t, int64_t head) {
    std::array<double, 3> x;
    for (int b = 0; b < 3; ++b)
      x[size_t(b)] = gates.at(entry, t, c.perGroup ? head / c.group : head, b);
    const std::string kind = c.gate;
    if (kind == "sigmoid")
      return {1 / (1 + std::exp(-x[0])), 1 / (1 + std::exp(-x[1])), 1 / (1 + std::exp(-x[2]))};
    if (kind == "softmax") {
      const double sum = std::exp(x[0]) + std::exp(x[1]) + std::exp(x[2]);
      return {std::exp(x[0]) / sum, std::exp(x[1]) / sum, std::exp(x[2]) / sum};
    }
    return x;
  }

  // That a launch over [begin, end) wrote what it should, and nothing else.
  void expectRight(int32_t begin, int32_t end, bool hasTable = true) {
    const auto isWritten = [&](int64_t t) {
      if (!hasTable)
        return isLaunched(c.packed, t, time, 0, begin, end);
      const Sequence &own = sequences[t >= sequences[1].begin];
      return isLaunched(c.packed, t - own.begin, own.length, own.begin, begin, end);
    };
    // Half a unit of the io type's last place, and what f32 loses on the way.
    const double unit = c.dtype == DType::kBf16 ? 0x1p-8 : c.dtype == DType::kF16 ? 0x1p-11 : 0;
    for (int64_t entry = 0; entry < entries; ++entry)
      for (int64_t t = 0; t < time; ++t)
        for (int64_t head = 0; head < heads; ++head) {
          const bool written = isWritten(t);
          const auto g = gatesAt(entry, t, head);
          for (int64_t j = 0; j < c.vDim; ++j) {
            const double got = out.at(entry, t, head, j);
            ASSERT_EQ(std::isnan(got), !written) << "entry " << entry << " time " << t << " head " << head;
            double want = 0, size = 0;
            for (int b = 0; b < 3; ++b)
              if (has(b)) {
                want += g[size_t(b)] * branches[b]->at(entry, t, head, j);
                size += std::abs(g[size_t(b)] * branches[b]->at(entry, t, head, j));
              }
            if (written)
              ASSERT_NEAR(got, want, unit * std::abs(want) + 1e-6 * size + 0x1p-25)
                  << "entry " << entry << " time " << t << " head " << head << " column " << j;
          }
          int32_t read = 0;
          for (int b = 0; b < 3; ++b)
            read += has(b) ? branchReads[b]->at(entry, t, head / c.group) : 0;
          ASSERT_EQ(reads.at(entry, t, head / c.group), written ? read : -1);
        }
  }

  Case c;
  int64_t entries, time, heads;
  std::array<Sequence, 2> sequences;
  std::unique_ptr<GuardedTensor> branches[3];
  std::unique_ptr<GuardedCounts> branchReads[3];
  GuardedTensor gates, out;
  GuardedCounts reads;
};

class CpuCombine : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(CpuCombine, AddsTheBranchesTimesTheirGates) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  Problem problem(c);
  problem.draw(engine);
  const TemplateKernel kernel = compile(c, features);
  for (const auto &[begin, end] : {std::pair<int32_t, int32_t>{0, kAll}, {5, 23}, {17, 18}, {38, kAll}}) {
    problem.run(kernel, begin, end);
    problem.expectRight(begin, end);
  }
  if (c.packed) {
    problem.run(kernel, 0, 39, /*wantsReads=*/true, /*hasTable=*/false);
    problem.expectRight(0, 39, /*hasTable=*/false);
  }
  problem.run(kernel, 0, kAll, /*wantsReads=*/false);
  EXPECT_EQ(problem.reads.at(0, 0, 0), -1);
}

const Case kCases[] = {
    {DType::kBf16, "value", false, 7, 4, 64, 16, 64, false},
    {DType::kF16, "sigmoid", false, 7, 3, 33, 32, 64, true},
    {DType::kF32, "softmax", false, 7, 1, 128, 64, 32, false},
    {DType::kBf16, "softmax", true, 7, 16, 96, 128, 64, true},
    {DType::kF32, "value", true, 5, 2, 7, 16, 32, true},
    {DType::kF16, "value", false, 2, 5, 80, 64, 32, false},
    {DType::kBf16, "sigmoid", true, 6, 8, 1, 32, 32, true},
    {DType::kF32, "softmax", false, 1, 6, 20, 16, 32, false},
    {DType::kBf16, "sigmoid", false, 7, 2, 300, 16, 256, false},
};
INSTANTIATE_TEST_SUITE_P(Cases, CpuCombine,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kCases)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuCombine);

class CpuCombineNan : public testing::TestWithParam<std::tuple<std::string, const char *>> {};

// One gate is NaN at one row, then one element of a branch whose gate is 0.
TEST_P(CpuCombineNan, ReachesWhatItIsMultipliedWithAndNothingElse) {
  const auto &[features, gate] = GetParam();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 engine(11);
  for (const bool isAbsent : {false, true}) {
    Case c{DType::kF32, gate, false, isAbsent ? 5 : 7, 3, 24, 16, 32, false};
    SCOPED_TRACE(testing::PrintToString(c));
    Problem problem(c);
    problem.draw(engine);
    problem.gates.set(1, 4, 2, 1, nan);
    const TemplateKernel kernel = compile(c, features);
    problem.run(kernel);
    // A softmax is over all three logits, so there even an absent branch's reaches the others.
    const bool reaches = !isAbsent || std::string(gate) == "softmax";
    for (int64_t t = 0; t < problem.time; ++t)
      for (int64_t head = 0; head < problem.heads; ++head)
        for (int64_t j = 0; j < c.vDim; ++j)
          ASSERT_EQ(std::isnan(problem.out.at(1, t, head, j)), reaches && t == 4 && head == 2)
              << "time " << t << " head " << head << " column " << j;

    problem.draw(engine);
    problem.gates.set(0, 7, 1, 1, std::string(gate) == "value" ? 0.0f : -std::numeric_limits<float>::infinity());
    problem.branches[1]->set(0, 7, 1, 3, nan);
    problem.run(kernel);
    for (int64_t j = 0; j < c.vDim; ++j)
      ASSERT_EQ(std::isnan(problem.out.at(0, 7, 1, j)), !isAbsent && j == 3) << "column " << j;
  }
}

INSTANTIATE_TEST_SUITE_P(Gates, CpuCombineNan,
                         testing::Combine(testing::ValuesIn(runnableFeatures()),
                                          testing::Values("value", "sigmoid", "softmax")));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuCombineNan);

} // namespace
} // namespace nsa::test
