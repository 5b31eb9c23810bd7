#include "tools/reference/nsa.h"

namespace nsa::reference {
namespace {

constexpr size_t kCmp = 0, kSel = 1, kWin = 2;

} // namespace

NsaResult forward(const Nsa &n, int threads) {
  NsaResult result;
  result.sequences = n.rows.empty() ? n.sequences : renumberRows(singleRows(n.sequences, n.rows));
  const TensorView qCmp = n.qCmp.isGiven() ? n.qCmp : n.q;
  const bool selects = n.spec.hasBranch(kBranchSel) && !n.blockLists.isGiven();

  TensorView kComp = n.kComp, vComp = n.vComp;
  if ((n.spec.hasBranch(kBranchCmp) || selects) && !kComp.isGiven()) {
    result.compressed = compress(
        {.spec = n.spec, .k = n.kCmp, .v = n.vCmp, .phiK = n.phiK, .phiV = n.phiV, .sequences = n.sequences}, threads);
    kComp = result.compressed.k.view();
    vComp = result.compressed.v.view();
  }

  auto branch = [&](Operator op, const TensorView &q, const TensorView &k, const TensorView &v) {
    Attention attention{.spec = n.spec, .q = q, .k = k, .v = v, .blockLists = {}, .sequences = result.sequences};
    attention.spec.op = op;
    if (op == Operator::kSel)
      attention.blockLists = result.blockLists;
    return attend(attention, threads);
  };
  if (n.spec.hasBranch(kBranchCmp))
    result.branches[kCmp] = branch(Operator::kCmp, qCmp, kComp, vComp);
  if (selects)
    result.blockLists = select({.spec = n.spec, .q = qCmp, .kComp = kComp, .sequences = result.sequences}, threads);
  else if (n.spec.hasBranch(kBranchSel))
    result.blockLists = readBlockLists(result.sequences, n.blockLists, n.spec.kvHeads, n.spec.selCount);
  if (n.spec.hasBranch(kBranchSel))
    result.branches[kSel] = branch(Operator::kSel, n.q, n.kSel, n.vSel);
  if (n.spec.hasBranch(kBranchWin))
    result.branches[kWin] = branch(Operator::kWindow, n.q, n.kWin, n.vWin);

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
