#include "tools/reference/nsa.h"

namespace nsa::reference {
namespace {

constexpr size_t kCmp = 0, kSel = 1, kWin = 2;

} // namespace

Attention attentionOf(const Nsa &n, const NsaResult &result, size_t branch) {
  Attention attention{.spec = n.spec, .q = n.q, .sequences = result.sequences};
  switch (branch) {
  case kCmp:
    attention.spec.op = Operator::kCmp;
    attention.q = n.qCmp.isGiven() ? n.qCmp : n.q;
    attention.k = n.kComp.isGiven() ? n.kComp : result.compressed.k.view();
    attention.v = n.kComp.isGiven() ? n.vComp : result.compressed.v.view();
    break;
  case kSel:
    attention.spec.op = Operator::kSel;
    attention.k = n.kSel;
    attention.v = n.vSel;
    attention.blockLists = result.blockLists;
    break;
  default:
    attention.spec.op = Operator::kWindow;
    attention.k = n.kWin;
    attention.v = n.vWin;
  }
  return attention;
}

NsaResult forward(const Nsa &n, int threads) {
  NsaResult result;
  result.sequences = n.rows.empty() ? n.sequences : renumberRows(singleRows(n.sequences, n.rows));
  const TensorView qCmp = n.qCmp.isGiven() ? n.qCmp : n.q;
  const bool selects = n.spec.hasBranch(kBranchSel) && !n.blockLists.isGiven();

  TensorView kComp = n.kComp;
  if ((n.spec.hasBranch(kBranchCmp) || selects) && !kComp.isGiven()) {
    result.compressed = compress(
        {.spec = n.spec, .k = n.kCmp, .v = n.vCmp, .phiK = n.phiK, .phiV = n.phiV, .sequences = n.sequences}, threads);
    kComp = result.compressed.k.view();
  }

  const auto attendBranch = [&](size_t branch) { return attend(attentionOf(n, result, branch), threads); };
  if (n.spec.hasBranch(kBranchCmp))
    result.branches[kCmp] = attendBranch(kCmp);
  if (selects)
    result.blockLists = select({.spec = n.spec, .q = qCmp, .kComp = kComp, .sequences = result.sequences}, threads);
  else if (n.spec.hasBranch(kBranchSel))
    result.blockLists = readBlockLists(result.sequences, n.blockLists, n.spec.kvHeads, n.spec.selCount);
  if (n.spec.hasBranch(kBranchSel))
    result.branches[kSel] = attendBranch(kSel);
  if (n.spec.hasBranch(kBranchWin))
    result.branches[kWin] = attendBranch(kWin);

  Combination combination{.spec = n.spec, .gates = n.gates, .branches = {}, .sequences = result.sequences};
  result.reads.assign(rowEnd(result.sequences) * n.spec.kvHeads, 0);
  for (size_t i = 0; i < kBranchCount; ++i) {
    combination.branches[i] = result.branches[i].out;
    for (size_t row = 0; row < result.branches[i].reads.size(); ++row)
      result.reads[row] += result.branches[i].reads[row];
  }
  result.out = combine(combination);
  return result;
}

} // namespace nsa::reference
