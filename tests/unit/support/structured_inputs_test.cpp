// Each structure's statement, measured on the lists that the fp64 reference chooses.
#include "tools/support/structured_inputs.h"

#include "tests/harness/seed.h"
#include "tools/support/forward_pass.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace nsa::tools {
namespace {

Spec usualSpec() {
  Spec spec; // 32/16/64/16
  spec.op = Operator::kNsa;
  spec.queryHeads = 4;
  spec.kvHeads = 2;
  spec.qkDim = 32;
  spec.vDim = 8;
  return spec;
}

OperatorInputs draw(const Spec &spec, const SequenceLengths &lengths, const StructureChoice &choice,
                    uint64_t seed = test::freshSeed()) {
  Result<OperatorInputs> inputs = drawStructuredInputs(spec, lengths, choice, seed);
  EXPECT_TRUE(inputs) << inputs.status().toString();
  return std::move(*inputs);
}

// The lists of chosen rows, by row and kv head.
class Lists {
public:
  Lists(const OperatorInputs &inputs, std::vector<int64_t> rows) : spec(inputs.spec), rows(std::move(rows)) {
    const reference::Nsa nsa = referenceNsa(inputs);
    const reference::Compressed compressed =
        reference::compress({spec, nsa.kCmp, nsa.vCmp, nsa.phiK, nsa.phiV, nsa.sequences});
    const std::vector<reference::Sequence> single =
        reference::renumberRows(reference::singleRows(nsa.sequences, this->rows));
    for (const reference::Sequence &sequence : single)
      positions.push_back(sequence.position(0));
    lists = reference::select({spec, nsa.q, compressed.k.view(), single});
  }

  size_t count() const { return rows.size(); }
  int64_t own(size_t row) const { return positions[row] / spec.selBlock; }
  std::set<int32_t> blocks(size_t row, int64_t head) const {
    std::set<int32_t> result;
    for (int32_t block : lists.at(static_cast<int64_t>(row), head))
      if (block >= 0)
        result.insert(block);
    return result;
  }
  std::set<int32_t> unforced(size_t row, int64_t head) const {
    std::set<int32_t> result = blocks(row, head);
    std::erase_if(result, [&](int32_t block) { return reference::isForced(spec, block, own(row)); });
    return result;
  }

private:
  Spec spec;
  std::vector<int64_t> rows, positions;
  reference::BlockLists lists;
};

std::vector<int64_t> range(int64_t begin, int64_t end, int64_t step = 1) {
  std::vector<int64_t> result;
  for (int64_t i = begin; i < end; i += step)
    result.push_back(i);
  return result;
}

// rho(m) = distinct blocks of m consecutive queries / (n m), over queries that select: the mean over windows of 64
// queries from all over one sequence, as the trained models' table has it.
constexpr int kSizes[] = {2, 4, 8, 16, 32, 64};
std::array<double, std::size(kSizes)> locality(const Spec &spec, int64_t tokens, int windows,
                                               const StructureChoice &choice) {
  constexpr int64_t kWindow = 64;
  const OperatorInputs inputs = draw(spec, {{tokens}, {tokens}}, choice);
  const int64_t first = int64_t{spec.selCount} * spec.selBlock;
  std::vector<int64_t> rows;
  for (int i = 0; i < windows; ++i) {
    const int64_t begin = first + (tokens - first - kWindow) * i / (windows - 1);
    for (int64_t row = begin; row < begin + kWindow; ++row)
      rows.push_back(row);
  }
  const Lists lists(inputs, rows);
  std::array<double, std::size(kSizes)> rho = {};
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    const auto size = static_cast<size_t>(kSizes[i]);
    size_t distinct = 0;
    for (size_t row = 0; row < lists.count(); row += size)
      for (int32_t head = 0; head < spec.kvHeads; ++head) {
        std::set<int32_t> blocks;
        for (size_t j = row; j < row + size; ++j)
          blocks.merge(lists.blocks(j, head));
        distinct += blocks.size();
      }
    rho[i] = static_cast<double>(distinct) / (static_cast<double>(lists.count()) * spec.kvHeads * spec.selCount);
    std::printf("T = %lld %s: rho(%d) = %.3f\n", static_cast<long long>(tokens),
                std::string(structureName(choice.structure)).c_str(), kSizes[i], rho[i]);
  }
  return rho;
}

struct Band {
  double low, high;
};

// The trained models' rows of the table, layer by layer the lowest and the highest.
TEST(StructuredInputs, RealLocalityIsThatOfTrainedModels) {
  constexpr Band kAt8192[] = {{.61, .67}, {.37, .44}, {.22, .28}, {.13, .17}, {.075, .098}, {.044, .056}};
  constexpr Band kAt32768[] = {{.67, .74}, {.45, .55}, {.30, .41}, {.19, .29}, {.12, .20}, {.078, .127}};
  const StructureChoice choice = {.structure = Structure::kRealLocality};
  Spec spec = usualSpec();
  const auto shorter = locality(spec, 8192, 24, choice);
  spec.queryHeads = spec.kvHeads = 1;
  const auto longer = locality(spec, 32768, 24, choice);
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    EXPECT_GE(shorter[i], kAt8192[i].low) << kSizes[i];
    EXPECT_LE(shorter[i], kAt8192[i].high) << kSizes[i];
    EXPECT_GE(longer[i], kAt32768[i].low) << kSizes[i];
    EXPECT_LE(longer[i], kAt32768[i].high) << kSizes[i];
  }
}

// The table's row of random lists with the forced blocks: what the band above is to be told from.
TEST(StructuredInputs, RandomOnesAgreeInTheForcedBlocksOnly) {
  constexpr double kExpected[] = {.802, .615, .429, .262, .140, .071};
  const auto rho = locality(usualSpec(), 8192, 24, {.structure = Structure::kRandom});
  for (size_t i = 0; i < std::size(kSizes); ++i)
    EXPECT_NEAR(rho[i], kExpected[i], 0.04 * kExpected[i]) << kSizes[i];
}

// One draw has few clusters and few centers, whose likeness decides for all of its queries: a draw in twenty had 5 % of
// its pairs in between. So what is said of shares is said of several draws together. A repeated run has one seed, so
// the seeds of the draws come from a generator.
constexpr int kDraws = 8;

// A query of noise likes the needle's one content or dislikes it, each half of the time, and a block must be better
// than most to be chosen: 46 % of such queries choose it. One draw has 768 of them, and more than half did so in 1 % of
// the draws; of kDraws draws it is less than one in 10^10.
TEST(StructuredInputs, TheLastQueriesFindTheNeedle) {
  const Spec spec = usualSpec();
  constexpr int64_t kQueries = 256, kNeedle = 1000;
  int others = 0, found = 0;
  std::mt19937_64 random(test::freshSeed());
  for (int drawn = 0; drawn < kDraws; ++drawn) {
    const OperatorInputs inputs = draw(spec, {{kQueries, kQueries}, {4096, 4096}},
                                       {.structure = Structure::kNeedle, .needlePosition = kNeedle}, random());
    const Lists lists(inputs, range(0, 2 * kQueries));
    for (size_t row = 0; row < lists.count(); ++row)
      for (int32_t head = 0; head < spec.kvHeads; ++head) {
        const bool has = lists.blocks(row, head).contains(kNeedle / spec.selBlock);
        if (static_cast<int64_t>(row) % kQueries >= kQueries - spec.selBlock) {
          EXPECT_TRUE(has) << "row " << row << " head " << head;
        } else {
          ++others;
          found += has;
        }
      }
  }
  EXPECT_LT(found, others / 2) << "the others have no reason to choose it";
}

TEST(StructuredInputs, RecentBlocksAreWantedMost) {
  const Spec spec = usualSpec();
  int64_t all = 0, near = 0;
  std::mt19937_64 random(test::freshSeed());
  for (int drawn = 0; drawn < kDraws; ++drawn) {
    const OperatorInputs inputs = draw(spec, {{2048}, {8192}}, {.structure = Structure::kRecency}, random());
    const Lists lists(inputs, range(0, 2048, 32));
    for (size_t row = 0; row < lists.count(); ++row)
      for (int32_t head = 0; head < spec.kvHeads; ++head)
        for (int32_t block : lists.unforced(row, head)) {
          ++all;
          near += lists.own(row) - block <= 2 * spec.selCount;
        }
    EXPECT_EQ(all, (drawn + 1) * static_cast<int64_t>(lists.count()) * 2 * 13);
  }
  EXPECT_GT(near, all * 9 / 10) << "of 96 to 128 blocks, the last 32";
}

TEST(StructuredInputs, ClusteredQueriesWantTheSameBlocksOrOthers) {
  const Spec spec = usualSpec();
  constexpr int64_t kQueries = 1024;
  int same = 0, other = 0, pairs = 0;
  std::mt19937_64 random(test::freshSeed());
  for (int drawn = 0; drawn < kDraws; ++drawn) {
    const OperatorInputs inputs = draw(spec, {{kQueries}, {4096}}, {.structure = Structure::kClustered}, random());
    const Lists lists(inputs, range(8, kQueries, 16)); // four of each block of queries
    for (int32_t head = 0; head < spec.kvHeads; ++head)
      for (size_t a = 0; a < lists.count(); ++a)
        for (size_t b = a + 1; b < lists.count(); ++b) {
          const std::set<int32_t> first = lists.unforced(a, head), second = lists.unforced(b, head);
          const auto shared =
              std::count_if(first.begin(), first.end(), [&](int32_t block) { return second.contains(block); });
          // Clusters have at most 13 blocks, of which a few are forced or still to come.
          same += shared >= 8;
          other += shared <= 5;
          ++pairs;
          if (a / 4 == b / 4)
            EXPECT_GE(shared, 8) << "queries " << a << " and " << b << " share a block of queries";
        }
  }
  EXPECT_GT(same + other, pairs * 95 / 100) << "nothing in between";
  EXPECT_GT(same, pairs / 20);
  EXPECT_GT(other, pairs / 2);
}

TEST(StructuredInputs, StructureIsTheContentAndNotItsRounding) {
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    Spec spec = usualSpec();
    spec.dtype = dtype;
    spec.layout = Layout::kPacked;
    const OperatorInputs inputs =
        draw(spec, {{64, 5}, {2048, 1500}}, {.structure = Structure::kNeedle, .needlePosition = 300});
    const Lists lists(inputs, {0, 63, 64, 68});
    for (size_t row = 0; row < lists.count(); ++row)
      EXPECT_TRUE(lists.blocks(row, 0).contains(300 / spec.selBlock)) << dtypeName(dtype) << " " << row;
  }
}

// Short ones, so that a sanitizer sees each structure's drawing: the statements above are arithmetic.
TEST(StructuredInputs, AGradientGetsWhatTheForwardPassOfTheStructureSaves) {
  Spec spec = usualSpec();
  spec.op = Operator::kNsaBwd;
  for (const Structure structure : {Structure::kRandom, Structure::kClustered, Structure::kRealLocality}) {
    SCOPED_TRACE(structureName(structure));
    const OperatorInputs inputs = draw(spec, {{600}, {600}}, {structure});
    OperatorInputs again = inputs;
    std::set<TensorName> saved = savedFor(spec.op);
    EXPECT_EQ(saved.erase(TensorName::kBlockIndex), 1u) << "which the spec does not ask for";
    for (const TensorName name : saved)
      again.tensors.erase(name);
    addReferenceSaved(again);
    EXPECT_EQ(again.tensors.size(), inputs.tensors.size());
    for (const TensorName name : saved)
      EXPECT_EQ(again[name].bytes, inputs[name].bytes) << tensorName(name);
  }
}

TEST(StructuredInputs, EachStructureFillsItsTensors) {
  Spec spec = usualSpec();
  spec.dtype = DType::kF32;
  spec.layout = Layout::kPacked;
  for (const Structure structure :
       {Structure::kRandom, Structure::kClustered, Structure::kRecency, Structure::kNeedle, Structure::kRealLocality}) {
    SCOPED_TRACE(structureName(structure));
    const OperatorInputs inputs =
        draw(spec, {{70, 3, 0}, {1500, 90, 20}}, {.structure = structure, .needlePosition = 15});
    int64_t elements = 0;
    for (const auto &[name, tensor] : inputs.tensors) {
      if (tensor.dtype != DType::kF32)
        continue;
      const auto *values = reinterpret_cast<const float *>(tensor.bytes.data());
      EXPECT_TRUE(std::all_of(values, values + tensor.elements(), [](float value) { return std::isfinite(value); }))
          << tensorName(name);
      elements += tensor.elements();
    }
    EXPECT_GT(elements, 1500 * spec.kvHeads * spec.qkDim);
  }
}

TEST(StructuredInputs, WhatCannotBeDrawnIsNamed) {
  auto expectError = [](const Spec &spec, const StructureChoice &choice, const std::string &text) {
    const Result<OperatorInputs> inputs = drawStructuredInputs(spec, {{10}, {20}}, choice, 1);
    ASSERT_FALSE(inputs) << text;
    EXPECT_NE(inputs.status().toString().find(text), std::string::npos) << inputs.status().toString();
  };
  Spec other = usualSpec(), linear = usualSpec();
  other.op = Operator::kWindow;
  linear.cmpKind = CmpKind::kLinear;
  for (const Structure structure :
       {Structure::kClustered, Structure::kRecency, Structure::kNeedle, Structure::kRealLocality}) {
    const std::string name(structureName(structure));
    expectError(other, {.structure = structure},
                "op = window: must be nsa, nsa_bwd or decode for the structure " + name);
    expectError(linear, {.structure = structure}, "cmp_kind = linear: must be mean for the structure " + name);
    EXPECT_EQ(*parseStructure(name), structure);
  }
  // The forced blocks are no field of the gradient, but the lists that it takes have them.
  Spec gradient = usualSpec();
  gradient.op = Operator::kNsaBwd;
  gradient.initBlocks = 1;
  gradient.localBlocks = 2;
  gradient.selCount = 2;
  ASSERT_TRUE(gradient.validate().isOk());
  expectError(gradient, {}, "sel_count = 2: must be at least init_blocks + local_blocks = 3");
  gradient.branches = kBranchSel; // the lists are drawn, and have no forced blocks
  EXPECT_TRUE(drawStructuredInputs(gradient, {{10}, {20}}, {}, 1));
  EXPECT_TRUE(drawStructuredInputs(other, {{10}, {20}}, {}, 1));
  EXPECT_TRUE(drawStructuredInputs(linear, {{10}, {20}}, {}, 1));
  expectError(usualSpec(), {.structure = Structure::kNeedle, .needlePosition = 20},
              "needle_position = 20: must be a token of every sequence, below 20");
  expectError(usualSpec(), {.structure = Structure::kNeedle, .needlePosition = -1}, "needle_position = -1");
  EXPECT_NE(parseStructure("spiral").status().toString().find(
                "must be one of random, clustered, recency, needle, real-locality"),
            std::string::npos);
}

} // namespace
} // namespace nsa::tools
