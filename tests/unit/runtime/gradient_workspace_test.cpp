// The workspace of nsa_bwd is the formula of docs/operators.md, written out here as it stands there, and is as large as
// that page says for the geometries of bench/configs. No memory is allocated.
#include "runtime/engine/graph/workspace.h"

#include "tests/harness/seed.h"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

using namespace nsa;

namespace {

int64_t ceildiv(int64_t value, int64_t by) { return (value + by - 1) / by; }
int64_t bucket(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

struct GradientSizes {
  const Spec &s;
  const Maxima &m;
  bool isPacked = s.layout == Layout::kPacked;
  int64_t element = dtypeBytes(s.dtype);
  int64_t entries = isPacked ? 1 : m.batch;
  int64_t rows = isPacked ? m.tokensQ : m.batch * m.seqlenQ;
  int64_t blocks = s.compressedBlocks(m.seqlenK);
  bool hasCmp = s.hasBranch(kBranchCmp), hasSel = s.hasBranch(kBranchSel), hasWin = s.hasBranch(kBranchWin);
  std::vector<int64_t> pieces{};

  // A tensor of keys and one of values.
  void addPair(int64_t rowsOfHead, int64_t bytes) {
    for (const int64_t dim : {s.qkDim, s.vDim})
      pieces.push_back(rowsOfHead * s.kvHeads * dim * bytes);
  }

  // Programs that share the queries that see a tile of keys.
  int64_t parts(int64_t keys) const {
    const int64_t programs = bucket(m.batch) * bucket(ceildiv(keys, 64)) * bucket(s.kvHeads);
    const int64_t most = bucket(m.seqlenQ) * (s.queryHeads / s.kvHeads) / 64;
    return std::clamp<int64_t>(std::min(ceildiv(2048, programs), most), 1, 16);
  }

  // What a query has in the chunk's memory for each place of its list.
  int64_t places() const { return s.dqSlots ? int64_t{s.queryHeads} * s.selCount : 0; }
  int64_t slotsRow() const { return places() * ((4 + element) * s.qkDim + 4); }
  int64_t chunkRows(bool isGpu) const {
    const int64_t out = int64_t{s.queryHeads} * s.vDim * element, sum = int64_t{4} * s.queryHeads * s.qkDim;
    const int64_t bytes = int64_t{!isGpu ? 32 : s.dqSlots ? 2048 : 512} << 20;
    const int64_t most = bytes / ((3 * out + sum + slotsRow()) * entries) / 64 * 64;
    const int64_t least = 64 + (!isPacked ? 0 : isGpu ? 384 : 128);
    return entries * std::min(std::max(most, least), std::max<int64_t>(isPacked ? m.tokensQ : m.seqlenQ, 1));
  }

  void addChunk(bool isGpu) {
    const int64_t out = int64_t{s.queryHeads} * s.vDim * element, sum = int64_t{4} * s.queryHeads * s.qkDim;
    const int64_t queries = chunkRows(isGpu);
    for (const bool has : {hasCmp, hasSel, hasWin})
      if (has)
        pieces.push_back(queries * out);
    pieces.push_back(queries * sum);
  }

  void addIndex(bool isGpu) {
    const int64_t programs = bucket(m.batch) * bucket(s.kvHeads);
    const int64_t shares = std::clamp<int64_t>(std::min(ceildiv(2048, programs), bucket(m.seqlenQ) / 128), 1, 128);
    pieces.push_back(4 * rows * s.kvHeads);
    const int64_t blockRow = m.batch * s.kvHeads * ceildiv(ceildiv(m.seqlenK, s.selBlock), 128) * 128;
    pieces.push_back(4 * shares * blockRow);
    const int64_t offsets = isPacked ? m.batch * (m.seqlenK / s.selBlock + 3) : ceildiv(m.seqlenK, s.selBlock) + 1;
    const int64_t entryPlaces = entries * s.kvHeads * (offsets + (isPacked ? m.tokensQ : m.seqlenQ) * s.selCount);
    pieces.push_back(4 * entryPlaces);
    if (s.dqSlots)
      for (const int64_t bytes : {4 * entryPlaces, 8 * blockRow, 4 * chunkRows(isGpu) * places() * s.qkDim,
                                  4 * chunkRows(isGpu) * places(), element * chunkRows(isGpu) * places() * s.qkDim})
        pieces.push_back(bytes);
  }

  void addPieces() {
    const int64_t entriesOfLists = bucket(m.batch) * bucket(m.seqlenQ) * bucket(s.kvHeads) * s.selCount;
    int64_t item = 1024;
    while (item > 64 && entriesOfLists / item < 1024)
      item /= 2;
    addPair((m.batch * (m.seqlenK / s.selBlock + 3) + rows * s.selCount / item) * s.selBlock, 4);
  }

  void addWeights() {
    const int64_t hidden = s.cmpKind == CmpKind::kMlp ? s.mlpHidden : 0, dims = int64_t{s.qkDim} + s.vDim;
    if (hidden > 0)
      for (int i = 0; i < 2; ++i) {
        const int64_t values = m.batch * blocks * s.kvHeads * hidden * element;
        const int copies = element == 2 ? 2 : 1; // with what rounding took
        pieces.push_back(copies * values);       // hidden values
        for (int dz = 0; dz < copies; ++dz)
          pieces.push_back(values);
      }
    if (s.cmpKind == CmpKind::kMean)
      return;
    const int64_t widest = std::max({int64_t{s.qkDim}, int64_t{s.vDim}, hidden});
    const int64_t shares = weightParts(s, m);
    pieces.push_back(4 * shares * (s.cmpBlock * dims + 2 * hidden) * widest);
    pieces.push_back(4 * shares * 4 * widest);
  }

  int64_t total(bool isGpu) {
    if (isPacked)
      pieces.push_back(32 * m.batch);
    if (hasCmp)
      addPair(m.batch * blocks, element);
    addChunk(isGpu);
    // The deltas of the branches, twice, and their gates.
    for (const bool has : {hasCmp, hasSel, hasWin, hasCmp, hasSel, hasWin, hasCmp, hasSel, hasWin})
      if (has)
        pieces.push_back(4 * rows * s.queryHeads);
    if (hasCmp) {
      addPair(m.batch * blocks, element);
      const bool hasRests = element == 2;
      if (hasRests)
        addPair(m.batch * blocks, element);
      if (const int64_t shares = parts(s.compressedBlocks(bucket(m.seqlenK))); shares > 1 || hasRests)
        addPair(m.batch * blocks, 4 * shares);
    }
    if (hasSel) {
      addIndex(isGpu);
      addPieces();
    }
    if (hasWin)
      addPair(m.batch * m.seqlenK, 4 * parts(bucket(m.seqlenK)));
    if (hasCmp) {
      addPair(m.batch * m.seqlenK, 4);
      addWeights();
    }
    int64_t end = 0;
    for (const int64_t piece : pieces)
      end = ceildiv(end, 256) * 256 + piece;
    return end;
  }
};

TEST(GradientWorkspace, IsTheFormula) {
  std::mt19937_64 random(test::freshSeed());
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    Spec spec;
    spec.op = Operator::kNsaBwd;
    spec.dtype = between(0, 1) ? DType::kBf16 : DType::kF32;
    spec.layout = between(0, 1) ? Layout::kPacked : Layout::kDense;
    spec.kvHeads = static_cast<int32_t>(between(1, 20));
    spec.queryHeads = spec.kvHeads * static_cast<int32_t>(between(1, 20));
    spec.qkDim = static_cast<int32_t>(between(1, 200));
    spec.vDim = static_cast<int32_t>(between(1, 200));
    spec.cmpStride = static_cast<int32_t>(between(1, 20));
    spec.cmpBlock = spec.cmpStride * static_cast<int32_t>(between(1, 4));
    spec.selBlock = spec.cmpStride * static_cast<int32_t>(between(1, 8));
    spec.selCount = static_cast<int32_t>(between(1, 40));
    spec.branches = static_cast<int32_t>(between(1, kAllBranches));
    spec.cmpKind = static_cast<CmpKind>(between(0, 2));
    spec.mlpHidden = static_cast<int32_t>(between(1, 300));
    spec.dqSlots = spec.hasBranch(kBranchSel) && between(0, 1);
    Maxima maxima;
    maxima.batch = between(0, 1) ? 1 : between(1, 40);
    maxima.seqlenK = int64_t{1} << between(0, 17);
    maxima.seqlenK = between(maxima.seqlenK / 2, maxima.seqlenK);
    maxima.seqlenQ = between(0, maxima.seqlenK);
    maxima.tokensQ = spec.layout == Layout::kPacked ? between(maxima.seqlenQ, maxima.batch * maxima.seqlenQ)
                                                    : maxima.batch * maxima.seqlenQ;
    const bool isGpu = between(0, 1) != 0;
    const WorkspaceLayout layout(spec, maxima, 0, isGpu);
    ASSERT_EQ(static_cast<int64_t>(layout.bytes), (GradientSizes{spec, maxima}.total(isGpu)))
        << "heads " << spec.queryHeads << "/" << spec.kvHeads << " dims " << spec.qkDim << "/" << spec.vDim << " l "
        << spec.cmpBlock << " d " << spec.cmpStride << " l' " << spec.selBlock << " n " << spec.selCount << " branches "
        << spec.branches << " kind " << cmpKindName(spec.cmpKind) << " " << layoutName(spec.layout) << " batch "
        << maxima.batch << " tokens " << maxima.tokensQ << " " << maxima.seqlenQ << "/" << maxima.seqlenK;
  }
}

// One sequence of 131072 tokens on a GPU, with the geometries of bench/configs.
TEST(GradientWorkspace, OfALongSequenceIsAsDocumented) {
  const struct {
    const char *name;
    int32_t queryHeads, kvHeads, qkDim;
    size_t mebibytes;
  } rows[] = {{"nsa128", 64, 4, 128, 3061},
              {"nsa192", 64, 4, 192, 3617},
              {"gqa4", 32, 8, 128, 6630},
              {"mha1", 16, 16, 128, 10905}};
  for (const auto &row : rows) {
    Spec spec;
    spec.op = Operator::kNsaBwd;
    spec.queryHeads = row.queryHeads;
    spec.kvHeads = row.kvHeads;
    spec.qkDim = row.qkDim;
    spec.vDim = 128;
    const Maxima maxima{.batch = 1, .tokensQ = 131072, .seqlenQ = 131072, .seqlenK = 131072};
    spec.dqSlots = takesSlots(spec, maxima);
    const size_t bytes = WorkspaceLayout(spec, maxima, 0, /*isGpu=*/true).bytes;
    EXPECT_EQ((bytes + (1 << 20) - 1) >> 20, row.mebibytes) << row.name;
    if (row.kvHeads == 4)
      EXPECT_LT(bytes, size_t{4} << 30) << row.name;
  }
}

} // namespace
