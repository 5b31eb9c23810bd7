#include "tests/unit/reference/drawn.h"

#include "tools/reference/elements.h"
#include "tools/reference/list_check.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace nsa::reference {
namespace {

int32_t draw(std::mt19937_64 &random, int32_t least, int32_t most) {
  return std::uniform_int_distribution<int32_t>(least, most)(random);
}

} // namespace

Spec drawSpec(std::mt19937_64 &random) {
  constexpr std::array kGroups = {1, 2, 3, 4, 6, 8, 16};
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = static_cast<DType>(draw(random, 0, 2));
  spec.kvHeads = draw(random, 1, 2);
  spec.queryHeads = spec.kvHeads * kGroups[static_cast<size_t>(draw(random, 0, 6))];
  spec.qkDim = draw(random, 1, 7);
  spec.vDim = draw(random, 1, 7);
  spec.window = draw(random, 1, 50);
  spec.scale = draw(random, 0, 1) ? 0 : 0.3f;
  spec.cmpStride = draw(random, 1, 4);
  spec.cmpBlock = spec.cmpStride * draw(random, 1, 6); // l = d, and l > l', are among them
  spec.selBlock = spec.cmpStride * draw(random, 1, 5);
  spec.initBlocks = draw(random, 0, 2);
  spec.localBlocks = draw(random, 1, 3);
  spec.selCount = spec.initBlocks + spec.localBlocks + draw(random, 0, 3);
  spec.cmpKind = static_cast<CmpKind>(draw(random, 0, 2));
  spec.mlpHidden = draw(random, 1, 6);
  spec.mlpActivation = static_cast<Activation>(draw(random, 0, 2));
  spec.gate = static_cast<Gate>(draw(random, 0, 2));
  spec.gatePerGroup = draw(random, 0, 1) != 0;
  spec.branches = draw(random, 0, 3) ? kAllBranches : draw(random, 1, 7);
  return spec;
}

std::string specText(const Spec &s) {
  return std::string(dtypeName(s.dtype)) + " heads " + std::to_string(s.queryHeads) + "/" + std::to_string(s.kvHeads) +
         " dims " + std::to_string(s.qkDim) + "/" + std::to_string(s.vDim) + " window " + std::to_string(s.window) +
         " l " + std::to_string(s.cmpBlock) + " d " + std::to_string(s.cmpStride) + " l' " +
         std::to_string(s.selBlock) + " n " + std::to_string(s.selCount) + " init " + std::to_string(s.initBlocks) +
         " local " + std::to_string(s.localBlocks) + " " + std::string(cmpKindName(s.cmpKind)) + " hidden " +
         std::to_string(s.mlpHidden) + " " + std::string(activationName(s.mlpActivation)) + " gate " +
         std::string(gateName(s.gate)) + (s.gatePerGroup ? " per group" : "") + " branches " +
         std::to_string(s.branches);
}

DrawnLengths denseLengths(int64_t batch, int64_t queries, int64_t keys) {
  return {.layout = Layout::kDense,
          .sequences = denseSequences(batch, queries, keys),
          .batches = batch,
          .queryTimes = queries,
          .keyTimes = keys};
}

DrawnLengths packedLengths(const std::vector<int64_t> &queries, const std::vector<int64_t> &keys, const Spec &spec) {
  std::vector<int32_t> cuQ = {0}, cuK = {0};
  for (size_t s = 0; s < queries.size(); ++s) {
    cuQ.push_back(cuQ.back() + static_cast<int32_t>(queries[s]));
    cuK.push_back(cuK.back() + static_cast<int32_t>(keys[s]));
  }
  return {.layout = Layout::kPacked,
          .sequences = packedSequences(cuQ, cuK, spec),
          .batches = 1,
          .queryTimes = cuQ.back(),
          .keyTimes = cuK.back()};
}

DrawnLengths drawLengths(std::mt19937_64 &random, const Spec &spec, int64_t maxTokens) {
  const int32_t most = static_cast<int32_t>(maxTokens);
  if (draw(random, 0, 1)) {
    const int64_t keys = draw(random, 0, most);
    return denseLengths(draw(random, 1, 3), draw(random, 0, static_cast<int32_t>(keys)), keys);
  }
  std::vector<int64_t> queries, keys;
  for (int s = 0; s < 4; ++s) {
    keys.push_back(draw(random, 0, 3) ? draw(random, 1, most) : 0);
    queries.push_back(draw(random, 0, 1) ? keys.back() : draw(random, 0, static_cast<int32_t>(keys.back())));
  }
  return packedLengths(queries, keys, spec);
}

OwnedTensor drawTensor(std::mt19937_64 &random, DType dtype, int64_t batches, int64_t times, int64_t heads,
                       int64_t columns, double size) {
  OwnedTensor tensor = OwnedTensor::make(dtype, batches, times, heads, columns);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < batches * times * heads * columns; ++i)
    storeElement(dtype, tensor.bytes.data(), i, size * normal(random));
  return tensor;
}

void setElement(OwnedTensor &tensor, int64_t batch, int64_t time, int64_t head, int64_t column, double value) {
  storeElement(tensor.dtype, tensor.bytes.data(), tensor.view().offset(batch, time, head, column), value);
}

void fillRow(OwnedTensor &tensor, int64_t batch, int64_t time, int64_t head, double value) {
  for (int64_t column = 0; column < tensor.columns; ++column)
    setElement(tensor, batch, time, head, column, value);
}

Phi DrawnPhi::phi(const Spec &spec) const {
  Phi phi;
  if (hasPe)
    phi.pe = pe.view();
  if (spec.cmpKind == CmpKind::kLinear) {
    phi.w = w.view();
    if (hasBias)
      phi.b = b.view();
  }
  if (spec.cmpKind == CmpKind::kMlp) {
    phi.w1 = w1.view();
    phi.w2 = w2.view();
    if (hasBias) {
      phi.b1 = b1.view();
      phi.b2 = b2.view();
    }
  }
  return phi;
}

DrawnPhi drawPhi(std::mt19937_64 &random, const Spec &spec, int64_t columns) {
  const DType type = spec.dtype;
  DrawnPhi phi;
  phi.hasPe = draw(random, 0, 1) != 0;
  phi.hasBias = draw(random, 0, 1) != 0;
  // Sums of l * D products stay near one.
  const double size = 1 / std::sqrt(static_cast<double>(spec.cmpBlock * columns));
  phi.pe = drawTensor(random, type, 1, spec.cmpBlock, 1, columns);
  phi.w = drawTensor(random, type, 1, spec.cmpBlock, columns, columns, size);
  phi.b = drawTensor(random, type, 1, 1, 1, columns);
  phi.w1 = drawTensor(random, type, 1, spec.cmpBlock, columns, spec.mlpHidden, size);
  phi.b1 = drawTensor(random, type, 1, 1, 1, spec.mlpHidden);
  phi.w2 = drawTensor(random, type, 1, spec.mlpHidden, 1, columns);
  phi.b2 = drawTensor(random, type, 1, 1, 1, columns);
  return phi;
}

DrawnNsa drawNsa(std::mt19937_64 &random, const Spec &spec, DrawnLengths lengths) {
  DrawnNsa drawn;
  drawn.spec = spec;
  auto queries = [&](int64_t heads, int64_t columns) {
    return drawTensor(random, spec.dtype, lengths.batches, lengths.queryTimes, heads, columns);
  };
  auto keys = [&](int64_t columns) {
    return drawTensor(random, spec.dtype, lengths.batches, lengths.keyTimes, spec.kvHeads, columns);
  };
  drawn.q = queries(spec.queryHeads, spec.qkDim);
  if (random() % 2)
    drawn.qCmp = queries(spec.queryHeads, spec.qkDim);
  drawn.kCmp = keys(spec.qkDim);
  drawn.vCmp = keys(spec.vDim);
  drawn.kSel = keys(spec.qkDim);
  drawn.vSel = keys(spec.vDim);
  drawn.kWin = keys(spec.qkDim);
  drawn.vWin = keys(spec.vDim);
  drawn.gates = queries(spec.gatePerGroup ? spec.kvHeads : spec.queryHeads, 3);
  drawn.phiK = drawPhi(random, spec, spec.qkDim);
  drawn.phiV = drawPhi(random, spec, spec.vDim);
  drawn.lengths = std::move(lengths);
  return drawn;
}

DrawnNsa drawLongLists(std::mt19937_64 &random, int32_t selCount) {
  Spec spec = drawSpec(random);
  spec.branches = kAllBranches;
  spec.cmpStride = draw(random, 1, 2);
  spec.cmpBlock = spec.cmpStride * draw(random, 1, 4);
  spec.selBlock = spec.cmpStride * draw(random, 1, 2);
  spec.selCount = selCount;
  const int64_t covered = int64_t{selCount} * spec.selBlock;
  return drawNsa(random, spec, packedLengths({9, 12}, {covered + 20 * spec.selBlock, covered + 1}, spec));
}

Nsa DrawnNsa::nsa() const {
  return {.spec = spec,
          .q = q.view(),
          .qCmp = qCmp.view(),
          .kCmp = kCmp.view(),
          .vCmp = vCmp.view(),
          .kSel = kSel.view(),
          .vSel = vSel.view(),
          .kWin = kWin.view(),
          .vWin = vWin.view(),
          .gates = gates.view(),
          .phiK = phiK.phi(spec),
          .phiV = phiV.phi(spec),
          .sequences = lengths.sequences};
}

Selection DrawnNsa::selection(const Compressed &compressed) const {
  return {.spec = spec,
          .q = qCmp.bytes.empty() ? q.view() : qCmp.view(),
          .kComp = compressed.k.view(),
          .sequences = lengths.sequences};
}

BlockListView listView(const BlockLists &lists, const DrawnLengths &lengths) {
  return {.data = lists.blocks.data(),
          .batchStride = lengths.queryTimes * lists.kvHeads * lists.slots,
          .timeStride = lists.kvHeads * lists.slots,
          .headStride = lists.slots,
          .slotStride = 1};
}

void expectNear(const std::vector<double> &actual, const std::vector<double> &expected, double margin,
                const std::string &what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
      continue;
    ASSERT_NEAR(actual[i], expected[i], margin) << what << ", element " << i;
  }
}

void expectSame(const AttentionResult &actual, const AttentionResult &expected) {
  expectNear(actual.out, expected.out, 1e-12, "out");
  expectNear(actual.lse, expected.lse, 1e-12, "lse");
  EXPECT_EQ(actual.reads, expected.reads);
}

void expectSameLists(const Selection &selection, const BlockLists &actual, const BlockLists &expected) {
  ASSERT_EQ(actual.blocks.size(), expected.blocks.size());
  for (const Sequence &sequence : selection.sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int64_t head = 0; head < selection.spec.kvHeads; ++head) {
        const int64_t row = sequence.firstRow + query;
        if (std::ranges::equal(actual.at(row, head), expected.at(row, head)))
          continue;
        const std::vector<double> scores = blockScores(selection, sequence, query, head);
        ASSERT_LT(selectionMargin(scores, selection.spec), 1e-12) << "row " << row << " kv head " << head;
      }
}

void expectSame(const NsaResult &actual, const NsaResult &expected) {
  for (size_t branch = 0; branch < kBranchCount; ++branch) {
    SCOPED_TRACE("branch " + std::to_string(branch));
    expectSame(actual.branches[branch], expected.branches[branch]);
  }
  EXPECT_EQ(actual.blockLists.blocks, expected.blockLists.blocks);
  EXPECT_EQ(actual.reads, expected.reads);
  expectNear(actual.out, expected.out, 1e-12, "combined output");
}

} // namespace nsa::reference
