// The graphs of decode. docs/operators.md describes them.
// Thread-safety: constants.
#pragma once

#include "runtime/base/key_splits.h"
#include "runtime/engine/graph/shared_nodes.h"

#include <limits>

namespace nsa {

// Kernels of decode find their lengths in a table, whatever the layout of the new tokens is.
inline void readTable(Spec &step, const Spec &whole) {
  dropCompression(step, whole);
  step.layout = Layout::kPacked;
}

// One kernel serves both branches, so that they do not wait for each other. The fields of a branch that is off have
// their defaults.
inline void joinBranches(Spec &step, const Spec &whole) {
  readTable(step, whole);
  if (!whole.hasBranch(kBranchSel)) {
    step.selBlock = Spec().selBlock;
    step.selCount = Spec().selCount;
  }
  if (!whole.hasBranch(kBranchWin))
    step.window = std::numeric_limits<int32_t>::max();
}

inline bool isWindowAlone(const Spec &spec, const Maxima &) { return !spec.hasBranch(kBranchSel); }
inline bool ranks(const Spec &spec, const Maxima &maxima) { return rankSegment(spec, maxima) != 0; }

// New tokens complete at most so many blocks of each sequence.
inline void countNewBlocks(KernelCall &call, const Spec &spec, const WorkspaceLayout &, const Call &) {
  call.grid.maxBlocksC = (call.grid.maxSeqlenQ + spec.cmpStride - 1) / spec.cmpStride;
}

inline void countScores(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setScalar(call.scalars, Scalar::kSplits, layout.shares.counts[0]);
  // Of this call's cache, which may have less room than the plan was made for.
  setScalar(call.scalars, Scalar::kMaxSeqlenK, call.grid.maxSeqlenK);
}

inline void boundSlots(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setScalar(call.scalars, Scalar::kPastCmpSplit, layout.shares.past[0]);
  setScalar(call.scalars, Scalar::kPastSelSplit, layout.shares.past[1]);
  setScalar(call.scalars, Scalar::kPastWinSplit, layout.shares.past[2]);
}

// Decode: new tokens go into the cache, and the blocks that become whole with them too. From there on it is the forward
// pass over the cache.
inline constexpr Binding kAppendBindings[] = {
    {View::kKSel, TensorName::kKSel},
    {View::kVSel, TensorName::kVSel},
    {View::kKWin, TensorName::kKWin},
    {View::kVWin, TensorName::kVWin},
    {View::kKCmp, TensorName::kKCmp},
    {View::kVCmp, TensorName::kVCmp},
    {View::kKSelCache, TensorName::kKSelCache},
    {View::kVSelCache, TensorName::kVSelCache},
    {View::kKRaw, TensorName::kKRaw},
    {View::kVRaw, TensorName::kVRaw},
    // One pool for both branches is written once.
    {.view = View::kKWinCache, .tensor = TensorName::kKWinCache, .sameAbsent = TensorName::kKSelCache},
    {.view = View::kVWinCache, .tensor = TensorName::kVWinCache, .sameAbsent = TensorName::kVSelCache},
    {View::kKStaged, Binding::kNoTensor, Buffer::kKStaged},
    {View::kVStaged, Binding::kNoTensor, Buffer::kVStaged},
};
inline constexpr Binding kCompressNewBlocks[] = {
    {View::kK, Binding::kNoTensor, Buffer::kKStaged},
    {View::kV, Binding::kNoTensor, Buffer::kVStaged},
    {View::kKComp, TensorName::kKCompCache},
    {View::kVComp, TensorName::kVCompCache},
    {View::kSequences, Binding::kNoTensor, Buffer::kTable, Order::kSecondRowColumn}};
inline constexpr GraphNode kCacheSequencesNode = {
    .role = Role::kSequences, .op = Operator::kCacheSequences, .change = readTable, .bindings = kLengths};
inline constexpr GraphNode kAppendNode = {.role = Role::kAppend,
                                          .op = Operator::kAppend,
                                          .change = readTable,
                                          .writesCache = true,
                                          .bindings = kAppendBindings};
inline constexpr GraphNode kCompressNewNode = {.role = Role::kCompress,
                                               .op = Operator::kCompress,
                                               .branches = kScoredBranches,
                                               .change = readTable,
                                               .writesCache = true,
                                               .bindsOperands = true,
                                               .bindings = kCompressNewBlocks,
                                               .prepare = countNewBlocks};
inline constexpr GraphBuffer kCacheTableBuffer = {Buffer::kTable,
                                                  Role::kSequences,
                                                  GraphBuffer::Rows::kSequences,
                                                  GraphBuffer::Heads::kNone,
                                                  GraphBuffer::Columns::kTableFields,
                                                  TensorRole::kIndex,
                                                  GraphBuffer::Copies::kTwo};
inline constexpr GraphBuffer kKStagedBuffer = {Buffer::kKStaged,
                                               Role::kCompress,
                                               GraphBuffer::Rows::kStaged,
                                               GraphBuffer::Heads::kKv,
                                               GraphBuffer::Columns::kQkDim,
                                               TensorRole::kIo};
inline constexpr GraphBuffer kVStagedBuffer = {
    Buffer::kVStaged, Role::kCompress, GraphBuffer::Rows::kStaged, GraphBuffer::Heads::kKv, GraphBuffer::Columns::kVDim,
    TensorRole::kIo};

inline constexpr Keys kCmpOfCache = {{View::kK, TensorName::kKCompCache}, {View::kV, TensorName::kVCompCache}};
inline constexpr auto kCacheCmp = cmpBindings(kCmpOfCache);
inline constexpr auto kCacheSelect = selectBindings(kCmpOfCache);
inline constexpr auto kCacheSel = selBindings({{View::kK, TensorName::kKSelCache}, {View::kV, TensorName::kVSelCache}});
inline constexpr auto kCacheWin = winBindings({{View::kK, TensorName::kKWinCache}, {View::kV, TensorName::kVWinCache}});
inline constexpr GraphNode kDecodeNodes[] = {kCacheSequencesNode,
                                             kAppendNode,
                                             kCompressNewNode,
                                             cmpNode(readTable, kCacheCmp),
                                             selectNode(readTable, kCacheSelect),
                                             selNode(readTable, kCacheSel),
                                             winNode(readTable, kCacheWin),
                                             kCombineNode};
inline constexpr GraphBuffer kDecodeBuffers[] = {
    kCacheTableBuffer,
    kKStagedBuffer,
    kVStagedBuffer,
    kLseBuffer,
    kListBuffer,
    outBuffer(Buffer::kOutCmp, Role::kCmp),
    readsBuffer(Buffer::kReadsCmp, Role::kCmp),
    outBuffer(Buffer::kOutSel, Role::kSel),
    readsBuffer(Buffer::kReadsSel, Role::kSel),
    outBuffer(Buffer::kOutWin, Role::kWin),
    readsBuffer(Buffer::kReadsWin, Role::kWin),
};
inline constexpr Graph kDecode = {kDecodeNodes, kDecodeBuffers, Operator::kDecode};

// Decode with few queries: programs share the keys of each query, and `merge` adds up what they found.
#define NSA_SHARE_BINDINGS                                                                                             \
  {View::kOSplit, Binding::kNoTensor, Buffer::kShareOut},                                                              \
      {View::kLseSplit, Binding::kNoTensor, Buffer::kShareLse, Order::kColumnRowHead}, {                               \
    View::kReadsSplit, Binding::kNoTensor, Buffer::kShareReads, Order::kColumnRowHead                                  \
  }
inline constexpr Binding kSplitCmpBindings[] = {{View::kQ, TensorName::kQCmp},
                                                {View::kK, TensorName::kKCompCache},
                                                {View::kV, TensorName::kVCompCache},
                                                NSA_SHARE_BINDINGS,
                                                {View::kLseHeads, Binding::kNoTensor, Buffer::kShareHeadLse}};
inline constexpr Binding kSplitSelWinBindings[] = {
    {View::kQ, TensorName::kQ},
    {View::kK, TensorName::kKSelCache},
    {View::kV, TensorName::kVSelCache},
    {View::kKWin, TensorName::kKWinCache},
    {View::kVWin, TensorName::kVWinCache},
    NSA_SHARE_BINDINGS,
    {View::kChoice, Binding::kNoTensor, Buffer::kChoice, Order::kRowHeadColumn}};
#undef NSA_SHARE_BINDINGS
inline constexpr Binding kScoresBindings[] = {
    {View::kQ, TensorName::kQCmp},
    {View::kK, TensorName::kKCompCache},
    {View::kLseGroups, Binding::kNoTensor, Buffer::kShareHeadLse, Order::kEntryRowGroup},
    {View::kScores, Binding::kNoTensor, Buffer::kScores, Order::kRowHeadColumn},
    {View::kScoreRows, Binding::kNoTensor, Buffer::kScores, Order::kRowHeadPiece}};
inline constexpr Binding kRankBindings[] = {
    {View::kScores, Binding::kNoTensor, Buffer::kScores, Order::kRowHeadColumn},
    {View::kScoreRows, Binding::kNoTensor, Buffer::kScores, Order::kRowHeadPiece},
    {View::kBestScores, Binding::kNoTensor, Buffer::kKeptScores, Order::kRowHeadColumn},
    {View::kBestBlocks, Binding::kNoTensor, Buffer::kKeptBlocks, Order::kRowHeadColumn}};
// Where `rank` is launched, the scores that it keeps take the place of all scores.
inline constexpr Binding kChooseBindings[] = {
    {View::kScores, Binding::kNoTensor, Buffer::kScores, Order::kRowHeadColumn},
    {View::kScoreRows, Binding::kNoTensor, Buffer::kScores, Order::kRowHeadPiece},
    {View::kScores, Binding::kNoTensor, Buffer::kKeptScores, Order::kRowHeadColumn},
    {View::kScoreRows, Binding::kNoTensor, Buffer::kKeptScores, Order::kRowHeadPiece},
    {View::kScoreBlocks, Binding::kNoTensor, Buffer::kKeptBlocks, Order::kRowHeadColumn},
    {View::kBestBlocks, Binding::kNoTensor, Buffer::kChoice, Order::kRowHeadColumn},
    {View::kChoiceRows, Binding::kNoTensor, Buffer::kChoice, Order::kRowHead},
    {View::kBlockList, TensorName::kBlockList}};
inline constexpr Binding kMergeBindings[] = {
    {View::kOSlots, Binding::kNoTensor, Buffer::kShareOut},
    {View::kLseSplit, Binding::kNoTensor, Buffer::kShareLse, Order::kColumnRowHead},
    {View::kLseSlots, Binding::kNoTensor, Buffer::kShareLse, Order::kRowHead},
    {View::kReadsSlots, Binding::kNoTensor, Buffer::kShareReads, Order::kRowHead},
    {View::kGates, TensorName::kGates},
    {View::kOut, TensorName::kOut},
    {View::kReads, TensorName::kReads},
    {View::kOCmp, TensorName::kOCmp},
    {View::kOSel, TensorName::kOSel},
    {View::kOWin, TensorName::kOWin},
    {View::kLseCmp, TensorName::kLseCmp},
    {View::kLseSel, TensorName::kLseSel},
    {View::kLseWin, TensorName::kLseWin}};
inline constexpr GraphNode kShareNodes[] = {
    kCacheSequencesNode,
    kAppendNode,
    kCompressNewNode,
    {.role = Role::kCmp,
     .op = Operator::kSplitCmp,
     .branches = kScoredBranches,
     .change = readTable,
     .output = kBranchCmp,
     .sharesKeys = true,
     .launch = GraphNode::Launch::kForScores,
     .bindings = kSplitCmpBindings},
    {.role = Role::kScores,
     .op = Operator::kScores,
     .branches = kBranchSel,
     .change = readTable,
     .launch = GraphNode::Launch::kForLists,
     .bindings = kScoresBindings,
     .prepare = countScores},
    {.role = Role::kRank,
     .op = Operator::kRank,
     .branches = kBranchSel,
     .isNeeded = ranks,
     .change = readTable,
     .launch = GraphNode::Launch::kForLists,
     .bindings = kRankBindings,
     .prepare = countScores},
    {.role = Role::kSelect,
     .op = Operator::kChoose,
     .branches = kBranchSel,
     .change = readTable,
     .launch = GraphNode::Launch::kForLists,
     .bindings = kChooseBindings,
     .prepare = countScores},
    {.role = Role::kAscend,
     .op = Operator::kAscend,
     .branches = kBranchSel,
     .change = readTable,
     .launch = GraphNode::Launch::kForCallerList,
     .bindings = kChooseBindings,
     .prepare = countScores},
    {.role = Role::kSel,
     .op = Operator::kSplitSelWin,
     .branches = kBranchSel,
     .change = joinBranches,
     .output = kBranchSel | kBranchWin,
     .sharesKeys = true,
     .bindings = kSplitSelWinBindings},
    {.role = Role::kWin,
     .op = Operator::kSplitSelWin,
     .branches = kBranchWin,
     .isNeeded = isWindowAlone,
     .change = joinBranches,
     .output = kBranchWin,
     .sharesKeys = true,
     .bindings = kSplitSelWinBindings},
    {.role = Role::kCombine, .op = Operator::kMerge, .bindings = kMergeBindings, .prepare = boundSlots},
};
inline constexpr GraphBuffer kShareBuffers[] = {
    kCacheTableBuffer,
    kKStagedBuffer,
    kVStagedBuffer,
    {Buffer::kShareOut, Role::kCombine, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kQuery,
     GraphBuffer::Columns::kVDim, TensorRole::kStatistics, GraphBuffer::Copies::kSplits},
    {Buffer::kShareLse, Role::kCombine, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kQuery,
     GraphBuffer::Columns::kShareSlots, TensorRole::kStatistics},
    {Buffer::kShareHeadLse, Role::kCmp, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kQuery,
     GraphBuffer::Columns::kOne, TensorRole::kStatistics, GraphBuffer::Copies::kCmpSplits},
    {Buffer::kShareReads, Role::kCombine, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kKv,
     GraphBuffer::Columns::kShareSlots, TensorRole::kIndex},
    {Buffer::kScores, Role::kScores, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kKv,
     GraphBuffer::Columns::kScoreBlocks, TensorRole::kStatistics},
    {Buffer::kKeptScores, Role::kRank, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kKv,
     GraphBuffer::Columns::kKeptBlocks, TensorRole::kStatistics},
    {Buffer::kKeptBlocks, Role::kRank, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kKv,
     GraphBuffer::Columns::kKeptBlocks, TensorRole::kIndex},
    {Buffer::kChoice, Role::kCombine, GraphBuffer::Rows::kQueries, GraphBuffer::Heads::kKv,
     GraphBuffer::Columns::kSelCount, TensorRole::kIndex},
};
inline constexpr Graph kDecodeOfFew = {kShareNodes, kShareBuffers, Operator::kDecode, /*isOfFew=*/true};

// Decode of few new tokens of each sequence. One kernel does what the kernels above do.
inline void takeStep(Spec &step, const Spec &whole) {
  dropCompression(step, whole);
  if (!whole.compresses())
    step.cmpKind = CmpKind::kMean;
  if (!whole.hasBranch(kBranchWin))
    step.window = std::numeric_limits<int32_t>::max();
}
inline constexpr Binding kStepBindings[] = {
    {View::kQ, TensorName::kQ},
    {View::kQCmp, TensorName::kQCmp},
    {View::kKSelCache, TensorName::kKSelCache},
    {View::kVSelCache, TensorName::kVSelCache},
    {View::kKWinCache, TensorName::kKWinCache},
    {View::kVWinCache, TensorName::kVWinCache},
    {View::kKComp, TensorName::kKCompCache},
    {View::kVComp, TensorName::kVCompCache},
    {View::kKSel, TensorName::kKSel},
    {View::kVSel, TensorName::kVSel},
    {View::kKWin, TensorName::kKWin},
    {View::kVWin, TensorName::kVWin},
    {View::kKCmp, TensorName::kKCmp},
    {View::kVCmp, TensorName::kVCmp},
    {View::kKRaw, TensorName::kKRaw},
    {View::kVRaw, TensorName::kVRaw},
    {View::kPeK, TensorName::kPeK},
    {View::kPeV, TensorName::kPeV},
    {View::kWK, TensorName::kWK},
    {View::kWV, TensorName::kWV},
    {View::kBK, TensorName::kBK},
    {View::kBV, TensorName::kBV},
    {View::kW1K, TensorName::kW1K},
    {View::kW1V, TensorName::kW1V},
    {View::kB1K, TensorName::kB1K},
    {View::kB1V, TensorName::kB1V},
    {View::kW2K, TensorName::kW2K},
    {View::kW2V, TensorName::kW2V},
    {View::kB2K, TensorName::kB2K},
    {View::kB2V, TensorName::kB2V},
    {View::kCuSeqlensQ, TensorName::kCuSeqlensQ},
    {View::kCacheSeqlens, TensorName::kCacheSeqlens},
    {View::kBlockTable, TensorName::kBlockTable},
    {View::kArrivals, Binding::kNoTensor, Buffer::kArrivals, Order::kRowHead},
    {View::kGates, TensorName::kGates},
    {View::kOut, TensorName::kOut},
    {View::kReads, TensorName::kReads},
    {View::kOCmp, TensorName::kOCmp},
    {View::kOSel, TensorName::kOSel},
    {View::kOWin, TensorName::kOWin},
    {View::kLseCmp, TensorName::kLseCmp},
    {View::kLseSel, TensorName::kLseSel},
    {View::kLseWin, TensorName::kLseWin},
    {View::kBlockList, TensorName::kBlockList},
};
inline constexpr GraphNode kStepNodes[] = {{.role = Role::kStep,
                                            .op = Operator::kDecodeStep,
                                            .change = takeStep,
                                            .writesCache = true,
                                            .bindings = kStepBindings}};
inline constexpr GraphBuffer kStepBuffers[] = {
    {Buffer::kArrivals, Role::kStep, GraphBuffer::Rows::kSequences, GraphBuffer::Heads::kKv,
     GraphBuffer::Columns::kMarks, TensorRole::kIndex},
};
inline constexpr Graph kDecodeStep = {kStepNodes, kStepBuffers, Operator::kDecode};

} // namespace nsa
