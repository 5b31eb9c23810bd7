// The templates of `compress` on the CPU backend alone, against the fp64 reference: dense and packed, odd sizes,
// sequences without a block, and NaN wherever a block does not look.
#include "tests/harness/seed.h"
#include "tests/unit/cpu/template_kernel.h"
#include "tools/reference/compression.h"
#include "tools/reference/elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace nsa::test {
namespace {

struct Case {
  DType dtype;
  CmpKind kind;
  int32_t qkDim, vDim, block, stride;
  std::vector<int64_t> lengths; // of packed sequences; one: a dense batch of kBatch sequences of this length
  bool hasOptional = true;      // pe and biases
  int32_t hidden = 1;
  Activation activation = Activation::kRelu;
  TemplateKernel::Pairs config{};
  bool roundsOperands = false; // the left sides of products to the io type, as GPUs do

  bool isPacked() const { return lengths.size() > 1; }
};

void PrintTo(const Case &c, std::ostream *out) {
  *out << cmpKindName(c.kind) << " " << dtypeName(c.dtype) << " dims " << c.qkDim << "/" << c.vDim << " blocks "
       << c.block << "/" << c.stride << " lengths " << testing::PrintToString(c.lengths) << " hidden " << c.hidden
       << " " << formatValues(c.config);
}

constexpr int64_t kBatch = 2, kKvHeads = 2;
// Rows before the first token and after the last, and columns between rows. They must not be read.
constexpr int64_t kMargin = 3, kGap = 5;

// [batches, rows, heads, columns] with gaps, between guard pages; all NaN until drawn.
struct Tensor {
  Tensor(DType dtype, int64_t batches, int64_t rows, int64_t heads, int64_t columns)
      : dtype(dtype), batches(batches), rows(rows), heads(heads), columns(columns), rowStride(heads * (columns + kGap)),
        memory(size_t((batches * rows * rowStride - kGap) * dtypeBytes(dtype))) {}

  int64_t index(int64_t batch, int64_t row, int64_t head, int64_t column) const {
    return (batch * rows + row) * rowStride + head * (columns + kGap) + column;
  }
  void set(int64_t index, double value) { reference::storeElement(dtype, memory.as<std::byte>(), index, value); }
  float at(int64_t batch, int64_t row, int64_t head, int64_t column) {
    return reference::loadElement(dtype, memory.as<std::byte>(), index(batch, row, head, column));
  }
  void draw(std::mt19937 &engine, double scale, int64_t batch, int64_t row) {
    std::normal_distribution<double> normal(0, scale);
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t column = 0; column < columns; ++column)
        set(index(batch, row, head, column), normal(engine));
  }
  void drawAll(std::mt19937 &engine, double scale) {
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t row = 0; row < rows; ++row)
        draw(engine, scale, batch, row);
  }
  reference::TensorView view() { return {memory.as<std::byte>(), dtype, rows * rowStride, rowStride, columns + kGap}; }
  // Coordinates (batch, row, head).
  std::vector<int64_t> strides() const { return {rows * rowStride, rowStride, columns + kGap}; }

  DType dtype;
  int64_t batches, rows, heads, columns, rowStride;
  GuardedBuffer memory;
};

// One of K and V: raw rows, weights, compressed rows, all NaN until drawn.
struct Side {
  Side(const Case &c, int64_t columns, int64_t tokens, int64_t blocks)
      : columns(columns), raw(c.dtype, c.isPacked() ? 1 : kBatch, tokens + 2 * kMargin, kKvHeads, columns),
        result(c.dtype, c.isPacked() ? 1 : kBatch, blocks + 1, kKvHeads, columns),
        pe(c.dtype, 1, isMean(c) ? 1 : c.block, 1, columns),
        w(c.dtype, 1, isMean(c) ? 1 : c.block, isMean(c) ? 1 : columns, isMlp(c) ? c.hidden : columns),
        b(c.dtype, 1, 1, 1, isMlp(c) ? c.hidden : columns), w2(c.dtype, 1, c.hidden, 1, columns),
        b2(c.dtype, 1, 1, 1, columns) {}

  // Hidden values and results are of the size of one.
  void drawWeights(std::mt19937 &engine) {
    pe.drawAll(engine, 0.5);
    w.drawAll(engine, 1 / std::sqrt(double(w.rows * columns)));
    b.drawAll(engine, 0.3);
    w2.drawAll(engine, 1 / std::sqrt(double(w2.rows)));
    b2.drawAll(engine, 0.3);
  }
  void copyWeights(Side &from) {
    for (auto member : {&Side::pe, &Side::w, &Side::b, &Side::w2, &Side::b2})
      std::memcpy((this->*member).memory.as<char>(), (from.*member).memory.as<char>(), (from.*member).memory.size());
  }

  static bool isMean(const Case &c) { return c.kind == CmpKind::kMean; }
  static bool isMlp(const Case &c) { return c.kind == CmpKind::kMlp; }

  reference::Phi phi(const Case &c) {
    auto ifGiven = [&](Tensor &tensor) { return c.hasOptional ? tensor.view() : reference::TensorView(); };
    if (c.kind == CmpKind::kMean)
      return {};
    if (c.kind == CmpKind::kLinear)
      return {.pe = ifGiven(pe), .w = w.view(), .b = ifGiven(b)};
    return {.pe = ifGiven(pe), .w1 = w.view(), .b1 = ifGiven(b), .w2 = w2.view(), .b2 = ifGiven(b2)};
  }

  int64_t columns;
  Tensor raw, result, pe, w, b, w2, b2;
};

TemplateKernel::Pairs fixedOf(const Case &c) {
  TemplateKernel::Pairs fixed = {{"dtype", std::string(dtypeName(c.dtype))},
                                 {"packed", c.isPacked() ? "1" : "0"},
                                 {"page_size", "0"},
                                 {"qk_dim", std::to_string(c.qkDim)},
                                 {"v_dim", std::to_string(c.vDim)},
                                 {"cmp_block", std::to_string(c.block)},
                                 {"cmp_stride", std::to_string(c.stride)},
                                 {"cmp_kind", std::string(cmpKindName(c.kind))},
                                 {"mlp_hidden", std::to_string(c.hidden)},
                                 {"mlp_activation", std::string(activationName(c.activation))}};
  return fixed;
}

struct Launch {
  Launch(const Case &c, const std::string &features)
      : c(c), kernel(std::string("tile/compress_") + std::string(cmpKindName(c.kind)) + ".tile", Operator::kCompress,
                     fixedOf(c), c.config, features, c.roundsOperands) {
    for (int64_t length : c.lengths) {
      const int64_t own = blocks(length);
      // The kernel reads the table's begins, which here leave rows free in front.
      const int64_t row[] = {0, 0, kMargin + tokens, length, totalBlocks, own, 0, 0};
      table.insert(table.end(), std::begin(row), std::end(row));
      tokens += length;
      totalBlocks += own;
      mostBlocks = std::max(mostBlocks, own);
    }
  }

  int64_t blocks(int64_t length) const { return length < c.block ? 0 : (length - c.block) / c.stride + 1; }

  void operator()(Side &k, Side &v, bool wantsK = true, bool wantsV = true) const {
    Arguments arguments;
    // A dense batch begins at its first row: the margin in front is skipped by the pointer.
    auto raw = [&](const char *name, Side &side) {
      const int64_t skipped = c.isPacked() ? 0 : side.raw.index(0, kMargin, 0, 0) * dtypeBytes(c.dtype);
      arguments.view(name, side.raw.memory.as<std::byte>() + skipped, side.raw.strides());
    };
    auto optional = [&](const std::string &name, Tensor &tensor, bool isGiven, std::vector<int64_t> strides) {
      arguments.view(name, isGiven ? tensor.memory.as<void>() : nullptr, std::move(strides));
    };
    auto weights = [&](const std::string &name, auto member, bool isOptional, size_t rank) {
      for (const auto &[side, suffix] : {std::pair(&k, "_k"), {&v, "_v"}}) {
        Tensor &tensor = side->*member;
        std::vector<int64_t> strides = tensor.strides();
        optional(name + suffix, tensor, c.hasOptional || !isOptional,
                 rank == 2 ? std::vector<int64_t>{strides[1], strides[2]} : std::vector<int64_t>{strides[1]});
      }
    };
    raw("k", k);
    raw("v", v);
    if (c.kind != CmpKind::kMean) {
      const std::string layer = c.kind == CmpKind::kMlp ? "1" : "";
      weights("pe", &Side::pe, true, 1);
      weights("w" + layer, &Side::w, false, 2);
      weights("b" + layer, &Side::b, true, 1);
    }
    if (c.kind == CmpKind::kMlp) {
      weights("w2", &Side::w2, false, 1);
      weights("b2", &Side::b2, true, 1);
    }
    optional("k_comp", k.result, wantsK, k.result.strides());
    optional("v_comp", v.result, wantsV, v.result.strides());
    arguments.view("sequences", c.isPacked() ? table.data() : nullptr, {8, 1});
    arguments.i32("seqlen_k", int32_t(c.lengths[0]));
    // The launcher may know a larger maximum.
    kernel.run(arguments, {{"batch", c.isPacked() ? int64_t(c.lengths.size()) : kBatch},
                           {"kv_heads", kKvHeads},
                           {"max_blocks_c", mostBlocks + 7}});
  }

  // Calls visit(batch, first row of the sequence's tokens, first compressed row, compressed rows).
  template <typename Visit> void forEachSequence(Visit visit) const {
    for (int64_t s = 0; s < int64_t(c.lengths.size()); ++s) {
      if (c.isPacked())
        visit(int64_t(0), int64_t(table[s * 8 + 2]), int64_t(table[s * 8 + 4]), int64_t(table[s * 8 + 5]));
      else
        for (int64_t batch = 0; batch < kBatch; ++batch)
          visit(batch, kMargin, int64_t(0), totalBlocks);
    }
  }

  const Case &c;
  TemplateKernel kernel;
  std::vector<int32_t> table;
  int64_t tokens = 0, totalBlocks = 0, mostBlocks = 0;
};

void drawTokens(const Launch &run, Side &side, std::mt19937 &engine) {
  run.forEachSequence([&](int64_t batch, int64_t firstToken, int64_t, int64_t blocks) {
    // Tokens after the last block stay NaN: no block holds them.
    const int64_t used = blocks == 0 ? 0 : (blocks - 1) * run.c.stride + run.c.block;
    for (int64_t i = 0; i < used; ++i)
      side.raw.draw(engine, 1, batch, firstToken + i);
  });
}

void checkRows(const Launch &run, Side &side) {
  const Case &c = run.c;
  Spec spec;
  spec.cmpKind = c.kind;
  spec.cmpBlock = c.block;
  spec.cmpStride = c.stride;
  spec.mlpHidden = c.hidden;
  spec.mlpActivation = c.activation;
  const reference::PhiFunction function(spec, side.phi(c), side.columns);
  const double bound = c.dtype == DType::kBf16  ? 5e-3
                       : c.dtype == DType::kF16 ? 1e-3
                                                : 1e-5; // docs/specification.md 11
  // A subnormal number of fp16 has fewer bits than the bound asks for, and a head of one column can be that small. So
  // half a step between subnormal numbers counts as no error. The other types reach far below these values.
  const double subnormalRounding = c.dtype == DType::kF16 ? 0x1p-25 : 0;
  double error = 0, size = 0, worst = 0;
  std::vector<bool> isWritten(size_t(side.result.batches * side.result.rows));
  run.forEachSequence([&](int64_t batch, int64_t firstToken, int64_t firstRow, int64_t blocks) {
    for (int64_t block = 0; block < blocks; ++block) {
      isWritten[size_t(batch * side.result.rows + firstRow + block)] = true;
      for (int64_t head = 0; head < kKvHeads; ++head) {
        std::vector<double> tokens;
        for (int64_t i = 0; i < c.block; ++i)
          for (int64_t column = 0; column < side.columns; ++column)
            tokens.push_back(side.raw.at(batch, firstToken + block * c.stride + i, head, column));
        const std::vector<double> expected = function(tokens);
        double rowError = 0, rowSize = 0;
        for (int64_t column = 0; column < side.columns; ++column) {
          const double got = side.result.at(batch, firstRow + block, head, column);
          ASSERT_FALSE(std::isnan(got)) << "block " << block << " head " << head << " column " << column;
          const double difference = std::max(0.0, std::fabs(got - expected[column]) - subnormalRounding);
          rowError += difference * difference;
          rowSize += expected[column] * expected[column];
        }
        error += rowError;
        size += rowSize;
        worst = std::max(worst, std::sqrt(rowError / rowSize));
      }
    }
  });
  const double relativeRms = size == 0 ? 0 : std::sqrt(error / size);
  testing::Test::RecordProperty("relative_rms_" + std::to_string(side.columns), std::to_string(relativeRms / bound));
  EXPECT_LE(relativeRms, bound);
  EXPECT_LE(worst, 4 * bound);
  // Nothing beside the blocks' rows is written.
  for (int64_t batch = 0; batch < side.result.batches; ++batch)
    for (int64_t row = 0; row < side.result.rows; ++row)
      for (int64_t index = side.result.index(batch, row, 0, 0); index < side.result.index(batch, row + 1, 0, 0);
           ++index) {
        const int64_t column = (index - side.result.index(batch, row, 0, 0)) % (side.columns + kGap);
        const bool isElement = isWritten[size_t(batch * side.result.rows + row)] && column < side.columns;
        if (!isElement && index < int64_t(side.result.memory.size()) / dtypeBytes(c.dtype))
          ASSERT_TRUE(std::isnan(reference::loadElement(c.dtype, side.result.memory.as<std::byte>(), index)))
              << "row " << row << " column " << column;
      }
}

class CpuCompress : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(CpuCompress, MatchesReference) {
  const auto &[features, c] = GetParam();
  std::mt19937 engine(freshSeed());
  const Launch run(c, features);
  ASSERT_FALSE(testing::Test::HasFailure());
  Side k(c, c.qkDim, run.tokens, run.totalBlocks), v(c, c.vDim, run.tokens, run.totalBlocks);
  k.drawWeights(engine);
  v.drawWeights(engine);
  drawTokens(run, k, engine);
  drawTokens(run, v, engine);
  run(k, v);
  checkRows(run, k);
  checkRows(run, v);

  // The same bits for a block whatever stands in the tokens outside of it; alone, without the other tensor's result.
  for (Side *side : {&k, &v}) {
    const bool isKey = side == &k;
    run.forEachSequence([&](int64_t batch, int64_t firstToken, int64_t firstRow, int64_t blocks) {
      if (blocks == 0)
        return;
      const int64_t block = std::uniform_int_distribution<int64_t>(0, blocks - 1)(engine);
      Side poisoned(c, side->columns, run.tokens, run.totalBlocks);
      const float poison[] = {NAN, INFINITY, -INFINITY};
      for (int64_t i = 0; i < int64_t(poisoned.raw.memory.size()) / dtypeBytes(c.dtype); ++i)
        poisoned.raw.set(i, poison[engine() % 3]);
      for (int64_t i = 0; i < c.block; ++i)
        for (int64_t head = 0; head < kKvHeads; ++head)
          for (int64_t column = 0; column < side->columns; ++column) {
            const int64_t token = firstToken + block * c.stride + i;
            poisoned.raw.set(poisoned.raw.index(batch, token, head, column), side->raw.at(batch, token, head, column));
          }
      poisoned.copyWeights(*side);
      Side other(c, isKey ? c.vDim : c.qkDim, run.tokens, run.totalBlocks);
      run(isKey ? poisoned : other, isKey ? other : poisoned, isKey, !isKey);
      for (int64_t head = 0; head < kKvHeads; ++head)
        for (int64_t column = 0; column < side->columns; ++column)
          ASSERT_EQ(poisoned.result.at(batch, firstRow + block, head, column),
                    side->result.at(batch, firstRow + block, head, column))
              << "block " << block << " head " << head << " column " << column;
      for (int64_t row = 0; row < other.result.rows; ++row)
        ASSERT_TRUE(std::isnan(other.result.at(0, row, 0, 0)));
    });
  }
}

constexpr DType kBf16 = DType::kBf16, kF16 = DType::kF16, kF32 = DType::kF32;
constexpr CmpKind kMean = CmpKind::kMean;

const Case kMeanCases[] = {
    {kBf16, kMean, 128, 128, 32, 16, {400}},
    {kF16, kMean, 72, 40, 32, 16, {337}},
    {kF32, kMean, 33, 7, 12, 4, {150}},
    {kF32, kMean, 64, 64, 32, 32, {32, 0, 31, 200, 64, 1}},
    {kBf16, kMean, 192, 128, 32, 16, {100, 400, 17}},
    {kF32, kMean, 5, 259, 7, 7, {61, 7, 6}},
    {kF16, kMean, 1, 1, 1, 1, {19}},
    {kBf16, kMean, 16, 24, 64, 4, {300}},
    {kF32, kMean, 16, 16, 32, 16, {31}}, // no block at all
    {kF32, kMean, 96, 48, 20, 5, {230}, true, 1, Activation::kRelu, {{"block_tile", "64"}, {"token_tile", "128"}}},
    {kBf16, kMean, 80, 80, 32, 16, {230, 90}, true, 1, Activation::kRelu, {{"column_tile", "48"}}},
};
INSTANTIATE_TEST_SUITE_P(Mean, CpuCompress,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kMeanCases)));

constexpr CmpKind kLinear = CmpKind::kLinear;

const Case kLinearCases[] = {
    {kBf16, kLinear, 64, 64, 32, 16, {400}},
    {kBf16, kLinear, 64, 64, 32, 16, {300}, false},
    {kF16, kLinear, 72, 40, 8, 4, {90}},
    {kF32, kLinear, 33, 7, 12, 4, {150}, false},
    {kF32, kLinear, 33, 7, 12, 4, {150}},
    {kF32, kLinear, 48, 48, 16, 16, {32, 0, 15, 200, 16, 1}},
    {kF32, kLinear, 5, 259, 2, 1, {21, 2, 1}},
    {kF16, kLinear, 1, 1, 1, 1, {19}},
    {kF32, kLinear, 16, 16, 32, 16, {31}}, // no block at all
    {kBf16,
     kLinear,
     96,
     80,
     4,
     2,
     {100, 33},
     true,
     1,
     Activation::kRelu,
     {{"input_tile", "32"}, {"column_tile", "48"}}},
    {kF32, kLinear, 40, 72, 4, 4, {400}, true, 1, Activation::kRelu, {{"block_tile", "64"}, {"input_tile", "16"}}},
    {kBf16, kLinear, 64, 48, 32, 16, {400}, true, 1, Activation::kRelu, {}, true},
    {kF16, kLinear, 48, 64, 32, 16, {400}, true, 1, Activation::kRelu, {}, true},
};
INSTANTIATE_TEST_SUITE_P(Linear, CpuCompress,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kLinearCases)));

constexpr CmpKind kMlp = CmpKind::kMlp;
constexpr Activation kRelu = Activation::kRelu, kGelu = Activation::kGelu, kSilu = Activation::kSilu;

const Case kMlpCases[] = {
    {kBf16, kMlp, 64, 64, 32, 16, {300}, true, 128, kGelu},
    {kBf16, kMlp, 64, 64, 32, 16, {300}, false, 96, kSilu},
    {kF16, kMlp, 72, 40, 8, 4, {90}, true, 33, kRelu},
    {kF32, kMlp, 33, 7, 12, 4, {150}, false, 20, kGelu},
    {kF32, kMlp, 33, 7, 12, 4, {150}, true, 1, kSilu},
    {kF32, kMlp, 48, 48, 16, 16, {32, 0, 15, 200, 16, 1}, true, 70, kRelu},
    {kF32, kMlp, 5, 259, 2, 1, {21, 2, 1}, true, 300, kGelu},
    {kF16, kMlp, 1, 1, 1, 1, {19}, true, 5, kSilu},
    {kF32, kMlp, 16, 16, 32, 16, {31}, true, 16, kRelu}, // no block at all
    {kBf16, kMlp, 96, 80, 4, 2, {100, 33}, true, 90, kGelu, {{"hidden_tile", "32"}, {"column_tile", "48"}}},
    {kF32, kMlp, 40, 72, 4, 4, {400}, true, 64, kSilu, {{"block_tile", "64"}, {"input_tile", "16"}}},
    {kBf16, kMlp, 64, 48, 32, 16, {400}, true, 128, kGelu, {}, true},
    {kBf16, kMlp, 64, 48, 32, 16, {400}, true, 128, kRelu, {}, true},
    {kF16, kMlp, 48, 64, 32, 16, {400}, true, 200, kSilu, {{"hidden_tile", "64"}}, true},
};
INSTANTIATE_TEST_SUITE_P(Mlp, CpuCompress,
                         testing::Combine(testing::ValuesIn(runnableFeatures()), testing::ValuesIn(kMlpCases)));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuCompress);

} // namespace
} // namespace nsa::test
