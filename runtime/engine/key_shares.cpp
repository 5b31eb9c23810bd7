#include "runtime/engine/key_shares.h"

#include <algorithm>

namespace nsa {

namespace {

// Scores and ranks of a query stand in rows that tiles read whole, in pieces of so many blocks.
constexpr int64_t kWidestTile = 128, kPiece = 16;

int64_t roundUp(int64_t value, int64_t granule) { return (value + granule - 1) / granule * granule; }

enum Branch : size_t { kCmp, kSel, kWin };

ViewSlots floats(std::byte *data, const std::array<int64_t, kMaxCoordinates> &strides) {
  return ViewSlots::make(data, DType::kF32, strides);
}

} // namespace

KeyShares::KeyShares(const Spec &spec, const Maxima &maxima)
    : counts(KeySplits::make(spec, maxima).counts),
      rows(spec.layout == Layout::kPacked ? maxima.tokensQ : maxima.batch * maxima.seqlenQ), heads(spec.queryHeads),
      kvHeads(spec.kvHeads), vDim(spec.vDim),
      blocks(roundUp((maxima.seqlenK + spec.selBlock - 1) / spec.selBlock, kWidestTile)), selCount(spec.selCount) {
  // What adds to the output comes first: the compressed branch may serve the selection alone.
  const bool adds = spec.hasBranch(kBranchCmp);
  int64_t next = 0;
  for (size_t branch : {kCmp, kSel, kWin}) {
    first[branch] = next;
    if (branch != kCmp || adds)
      next += counts[branch];
    past[branch] = next;
  }
  if (!adds)
    first[kCmp] = next;
}

void KeyShares::placeIn(const std::function<void(size_t &, int64_t)> &place) {
  constexpr int64_t kBytes = sizeof(float);
  place(output, (counts[kCmp] + counts[kSel] + counts[kWin]) * rows * heads * vDim * kBytes);
  place(lse, rows * heads * kSlots * kBytes);
  place(lseHeads, counts[kCmp] * rows * heads * kBytes);
  place(reads, rows * kvHeads * kSlots * kBytes);
  place(scores, rows * kvHeads * blocks * kBytes);
  place(ranks, rows * kvHeads * blocks * kBytes);
  place(choice, rows * kvHeads * selCount * kBytes);
}

ViewSlots KeyShares::outputs(std::byte *workspace) const {
  return floats(workspace + output, {rows * heads * vDim, heads * vDim, vDim});
}

void KeyShares::bindShare(KernelCall &call, std::byte *workspace, int64_t splits, int64_t firstSlot) const {
  call.grid.splits = splits;
  setScalar(call.scalars, Scalar::kSplits, splits);
  setScalar(call.scalars, Scalar::kSelSplits, 0);
  setScalar(call.scalars, Scalar::kFirstSplit, firstSlot);
  call[View::kOSplit] = outputs(workspace);
  call[View::kLseSplit] = floats(workspace + lse, {1, heads * kSlots, kSlots});
  call[View::kReadsSplit] = ViewSlots::make(workspace + reads, DType::kI32, {1, kvHeads * kSlots, kSlots});
}

void KeyShares::bindCmp(KernelCall &call, std::byte *workspace) const {
  bindShare(call, workspace, counts[kCmp], first[kCmp]);
  call[View::kLseHeads] = floats(workspace + lseHeads, {rows * heads, heads, 1});
}

void KeyShares::bindSelWin(KernelCall &call, std::byte *workspace, bool sel, bool win) const {
  const int64_t selSplits = sel ? counts[kSel] : 0;
  bindShare(call, workspace, selSplits + (win ? counts[kWin] : 0), first[sel ? kSel : kWin]);
  setScalar(call.scalars, Scalar::kSelSplits, selSplits);
  call[View::kChoice] = ViewSlots::make(workspace + choice, DType::kI32, {kvHeads * selCount, selCount, 1});
}

void KeyShares::bindScores(KernelCall &call, std::byte *workspace) const {
  setScalar(call.scalars, Scalar::kSplits, counts[kCmp]);
  // Of this call's cache, which may have less room than the plan was made for.
  setScalar(call.scalars, Scalar::kMaxSeqlenK, call.grid.maxSeqlenK);
  call[View::kLseGroups] = floats(workspace + lseHeads, {rows * heads, heads, heads / kvHeads});
  call[View::kScores] = floats(workspace + scores, {kvHeads * blocks, blocks, 1});
  call[View::kScoreRows] = floats(workspace + scores, {kvHeads * blocks, blocks, kPiece});
  call[View::kRanks] = floats(workspace + ranks, {kvHeads * blocks, blocks, 1});
  call[View::kRankRows] = floats(workspace + ranks, {kvHeads * blocks, blocks, kPiece});
  call[View::kChoice] = ViewSlots::make(workspace + choice, DType::kI32, {kvHeads * selCount, selCount, 1});
  call[View::kChoiceRows] = ViewSlots::make(workspace + choice, DType::kI32, {kvHeads * selCount, selCount});
}

void KeyShares::bindSlots(KernelCall &call, std::byte *workspace) const {
  setScalar(call.scalars, Scalar::kPastCmpSplit, past[kCmp]);
  setScalar(call.scalars, Scalar::kPastSelSplit, past[kSel]);
  setScalar(call.scalars, Scalar::kPastWinSplit, past[kWin]);
  call[View::kOSlots] = outputs(workspace);
  call[View::kLseSlots] = floats(workspace + lse, {heads * kSlots, kSlots});
  call[View::kReadsSlots] = ViewSlots::make(workspace + reads, DType::kI32, {kvHeads * kSlots, kSlots});
}

} // namespace nsa
