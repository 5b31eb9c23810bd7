#include "runtime/engine/graph/key_shares.h"

#include <algorithm>

namespace nsa {

namespace {

// Scores of a query stand in rows that tiles read whole, in pieces of so many.
constexpr int64_t kWidestTile = 128, kPiece = 16;

int64_t roundUp(int64_t value, int64_t granule) { return (value + granule - 1) / granule * granule; }

// Scores that `rank` leaves of a query's blocks.
int64_t keptScoresOf(const Spec &spec, const Maxima &maxima, int64_t blocks) {
  const int64_t segment = rankSegment(spec, maxima);
  return segment ? (blocks + segment - 1) / segment * keptOfSegment(spec) : 0;
}

enum Branch : size_t { kCmp, kSel, kWin };

ViewSlots floats(std::byte *data, const std::array<int64_t, kMaxCoordinates> &strides) {
  return ViewSlots::make(data, DType::kF32, strides);
}

} // namespace

KeyShares::KeyShares(const Spec &spec, const Maxima &maxima)
    : counts(KeySplits::make(spec, maxima).counts),
      rows(spec.layout == Layout::kPacked ? maxima.tokensQ : maxima.batch * maxima.seqlenQ), heads(spec.queryHeads),
      kvHeads(spec.kvHeads), vDim(spec.vDim), selCount(spec.selCount) {
  const int64_t most = (maxima.seqlenK + spec.selBlock - 1) / spec.selBlock;
  blocks = roundUp(most, kWidestTile);
  kept = roundUp(keptScoresOf(spec, maxima, most), kWidestTile);
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

void KeyShares::placeIn(const std::function<void(size_t &, Saturated)> &place) {
  constexpr int64_t kBytes = sizeof(float);
  const Saturated perHead = Saturated(rows) * heads * kBytes, perGroup = Saturated(rows) * kvHeads * kBytes;
  place(output, perHead * vDim * (counts[kCmp] + counts[kSel] + counts[kWin]));
  place(lse, perHead * kSlots);
  place(lseHeads, perHead * counts[kCmp]);
  place(reads, perGroup * kSlots);
  place(scores, perGroup * blocks);
  place(keptScores, perGroup * kept);
  place(keptBlocks, perGroup * kept);
  place(choice, perGroup * selCount);
}

ViewSlots KeyShares::outputs(std::byte *workspace) const {
  return floats(workspace + output, {rows * heads * vDim, heads * vDim, vDim});
}

ViewSlots KeyShares::lseSplits(std::byte *workspace) const {
  return floats(workspace + lse, {1, heads * kSlots, kSlots});
}

void KeyShares::bindShare(KernelCall &call, std::byte *workspace, int64_t splits, int64_t firstSlot) const {
  call.grid.splits = splits;
  setScalar(call.scalars, Scalar::kSplits, splits);
  setScalar(call.scalars, Scalar::kSelSplits, 0);
  setScalar(call.scalars, Scalar::kFirstSplit, firstSlot);
  call[View::kOSplit] = outputs(workspace);
  call[View::kLseSplit] = lseSplits(workspace);
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
  call[View::kChoice] = integers(workspace + choice, selCount);
}

void KeyShares::bindScores(KernelCall &call, std::byte *workspace) const {
  setScalar(call.scalars, Scalar::kSplits, counts[kCmp]);
  // Of this call's cache, which may have less room than the plan was made for.
  setScalar(call.scalars, Scalar::kMaxSeqlenK, call.grid.maxSeqlenK);
  call[View::kLseGroups] = floats(workspace + lseHeads, {rows * heads, heads, heads / kvHeads});
  bindRows(call, workspace + scores, blocks);
}

// Scores by themselves, and rows of them.
void KeyShares::bindRows(KernelCall &call, std::byte *data, int64_t columns) const {
  call[View::kScores] = floats(data, {kvHeads * columns, columns, 1});
  call[View::kScoreRows] = floats(data, {kvHeads * columns, columns, kPiece});
}

ViewSlots KeyShares::integers(std::byte *data, int64_t columns) const {
  return ViewSlots::make(data, DType::kI32, {kvHeads * columns, columns, 1});
}

void KeyShares::bindRank(KernelCall &call, std::byte *workspace) const {
  bindRows(call, workspace + scores, blocks);
  call[View::kBestScores] = floats(workspace + keptScores, {kvHeads * kept, kept, 1});
  call[View::kBestBlocks] = integers(workspace + keptBlocks, kept);
}

void KeyShares::bindChoice(KernelCall &call, std::byte *workspace) const {
  if (kept) {
    bindRows(call, workspace + keptScores, kept);
    call[View::kScoreBlocks] = integers(workspace + keptBlocks, kept);
  } else {
    bindRows(call, workspace + scores, blocks);
  }
  call[View::kBestScores] = {};
  call[View::kBestBlocks] = integers(workspace + choice, selCount);
  call[View::kChoiceRows] = ViewSlots::make(workspace + choice, DType::kI32, {kvHeads * selCount, selCount});
}

void KeyShares::bindSlots(KernelCall &call, std::byte *workspace) const {
  setScalar(call.scalars, Scalar::kPastCmpSplit, past[kCmp]);
  setScalar(call.scalars, Scalar::kPastSelSplit, past[kSel]);
  setScalar(call.scalars, Scalar::kPastWinSplit, past[kWin]);
  call[View::kOSlots] = outputs(workspace);
  call[View::kLseSplit] = lseSplits(workspace);
  call[View::kLseSlots] = floats(workspace + lse, {heads * kSlots, kSlots});
  call[View::kReadsSlots] = ViewSlots::make(workspace + reads, DType::kI32, {kvHeads * kSlots, kSlots});
}

} // namespace nsa
