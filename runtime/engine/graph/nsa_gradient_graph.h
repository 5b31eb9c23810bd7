// The graphs of sel_bwd and nsa_bwd. docs/operators.md describes them.
// Thread-safety: constants.
#pragma once

#include "runtime/engine/call/call.h"
#include "runtime/engine/graph/compress_gradient_graph.h"
#include "runtime/engine/graph/gradient_graphs.h"

#include <utility>

namespace nsa {

// What the gradients of a branch read. Where a tensor is not bound, its buffer has what the plan computes itself.
struct BranchNames {
  Binding q, k, v, lse, delta, weight;

  constexpr std::array<Binding, 7> inputs() const {
    return {{q, k, v, {View::kDOut, TensorName::kDOut}, lse, delta, weight}};
  }
};
// The kernel of queries has corrected delta.
constexpr BranchNames ofKeys(BranchNames names, Buffer nextDelta) {
  names.delta = {.view = View::kDelta, .buffer = nextDelta};
  return names;
}
inline constexpr BranchNames kSelAlone = {{View::kQ, TensorName::kQ},
                                          {View::kK, TensorName::kKSel},
                                          {View::kV, TensorName::kVSel},
                                          {View::kLse, TensorName::kLse},
                                          {View::kDelta, TensorName::kDelta, Buffer::kDelta},
                                          {.view = View::kWeight}};
inline constexpr BranchNames kCmpOfAll = {{View::kQ, TensorName::kQCmp},
                                          {View::kK, TensorName::kKComp, Buffer::kKComp},
                                          {View::kV, TensorName::kVComp, Buffer::kVComp},
                                          {View::kLse, TensorName::kLseCmp},
                                          {.view = View::kDelta, .buffer = Buffer::kDeltaCmp},
                                          {.view = View::kWeight, .buffer = Buffer::kWeightCmp}};
inline constexpr BranchNames kSelOfAll = {{View::kQ, TensorName::kQ},
                                          {View::kK, TensorName::kKSel},
                                          {View::kV, TensorName::kVSel},
                                          {View::kLse, TensorName::kLseSel},
                                          {.view = View::kDelta, .buffer = Buffer::kDeltaSel},
                                          {.view = View::kWeight, .buffer = Buffer::kWeightSel}};
inline constexpr BranchNames kWinOfAll = {{View::kQ, TensorName::kQ},
                                          {View::kK, TensorName::kKWin},
                                          {View::kV, TensorName::kVWin},
                                          {View::kLse, TensorName::kLseWin},
                                          {.view = View::kDelta, .buffer = Buffer::kDeltaWin},
                                          {.view = View::kWeight, .buffer = Buffer::kWeightWin}};

// --- the selected branch. A program of keys serves a piece of the queries that list a block. The pieces of a block are
// added up.
inline constexpr std::array<Binding, 2> kLists = {
    {{View::kBlockList, TensorName::kBlockList}, {.view = View::kListLengths, .buffer = Buffer::kListLengths}}};
inline constexpr std::array<Binding, 3> kPieces = {
    {{View::kBlockIndex, TensorName::kBlockIndex, Buffer::kBlockIndex, Order::kRowHeadColumn},
     {.view = View::kDkPieces, .buffer = Buffer::kDkPieces, .order = Order::kRowHead},
     {.view = View::kDvPieces, .buffer = Buffer::kDvPieces, .order = Order::kRowHead}}};
constexpr GraphBuffer piecesBuffer(Buffer buffer, GraphBuffer::Columns columns) {
  return partsBuffer(buffer, Role::kIndexFill, GraphBuffer::Rows::kPieces, columns);
}
inline constexpr GraphBuffer kEntrySlotsBuffer = {Buffer::kEntrySlots,          Role::kIndexSlots,
                                                  GraphBuffer::Rows::kEntries,  GraphBuffer::Heads::kKv,
                                                  GraphBuffer::Columns::kIndex, TensorRole::kIndex};
inline constexpr GraphBuffer kIndexRangesBuffer = {Buffer::kIndexRanges,
                                                   Role::kIndexRanges,
                                                   GraphBuffer::Rows::kSequences,
                                                   GraphBuffer::Heads::kKv,
                                                   GraphBuffer::Columns::kScoreBlocks,
                                                   TensorRole::kIndex,
                                                   GraphBuffer::Copies::kTwo};
constexpr GraphBuffer slotsBuffer(Buffer buffer, GraphBuffer::Columns columns,
                                  TensorRole role = TensorRole::kStatistics) {
  return {buffer, Role::kDqSlots, GraphBuffer::Rows::kChunk, GraphBuffer::Heads::kQuery, columns, role};
}
inline constexpr GraphBuffer kDqSlotsBuffer = slotsBuffer(Buffer::kDqSlots, GraphBuffer::Columns::kSlotRows);
inline constexpr GraphBuffer kKeySlotsBuffer =
    slotsBuffer(Buffer::kKeySlots, GraphBuffer::Columns::kSlotRows, TensorRole::kIo);
inline constexpr GraphBuffer kRestSlotsBuffer = slotsBuffer(Buffer::kRestSlots, GraphBuffer::Columns::kRestSlots);
inline constexpr GraphBuffer kDkPiecesBuffer = piecesBuffer(Buffer::kDkPieces, GraphBuffer::Columns::kQkDim);
inline constexpr GraphBuffer kDvPiecesBuffer = piecesBuffer(Buffer::kDvPieces, GraphBuffer::Columns::kVDim);

// By slots: what each block adds to the gradient of a query has a place of its own, for a chunk of queries.
inline bool bySlots(const Spec &spec, const Maxima &) { return spec.dqSlots && spec.hasLists(); }
inline bool byQueries(const Spec &spec, const Maxima &) { return !spec.dqSlots && spec.hasLists(); }
inline constexpr Binding kEntrySlots = {
    .view = View::kEntrySlots, .buffer = Buffer::kEntrySlots, .order = Order::kRowHeadColumn};
inline constexpr Binding kIndexRanges = {
    .view = View::kIndexRanges, .buffer = Buffer::kIndexRanges, .order = Order::kEntryRowHeadColumn};
inline constexpr Binding kDqSlots = {
    .view = View::kDqSlots, .buffer = Buffer::kDqSlots, .order = Order::kEntryRowGroupPart};
inline constexpr Binding kRestSlots = {
    .view = View::kRestSlots, .buffer = Buffer::kRestSlots, .order = Order::kEntryRowGroupPart};
inline constexpr Binding kKeySlots = {
    .view = View::kKeySlots, .buffer = Buffer::kKeySlots, .order = Order::kEntryRowGroupPart};
inline constexpr std::array kIndexSlotsBindings = {kLists[0], kPieces[0], kEntrySlots};
inline constexpr std::array kIndexRangesBindings = {kPieces[0], kIndexRanges};
constexpr auto slotsBindings(const BranchNames &names) {
  const auto &[q, k, v, lse, delta, weight] = names; // the weight is for the sum
  return std::array{q,
                    k,
                    v,
                    Binding{View::kDOut, TensorName::kDOut},
                    lse,
                    delta,
                    kPieces[0],
                    kEntrySlots,
                    kIndexRanges,
                    kDqSlots,
                    kRestSlots,
                    kKeySlots};
}
constexpr GraphNode slotsNode(Role role, Operator op, std::span<const Binding> bindings) {
  return {.role = role, .op = op, .isNeeded = bySlots, .isChunked = true, .bindings = bindings};
}
inline constexpr GraphNode kIndexSlotsNode = {.role = Role::kIndexSlots,
                                              .op = Operator::kIndexSlots,
                                              .isNeeded = bySlots,
                                              .change = dropCompression,
                                              .launch = GraphNode::Launch::kWithIndex,
                                              .bindings = kIndexSlotsBindings,
                                              .prepare = countPieces};
constexpr GraphNode indexRangesNode() {
  GraphNode node = slotsNode(Role::kIndexRanges, Operator::kIndexRanges, kIndexRangesBindings);
  node.change = dropCompression;
  return node;
}
constexpr GraphNode dqSlotsNode(std::span<const Binding> bindings) {
  GraphNode node = slotsNode(Role::kDqSlots, Operator::kSelDqSlots, bindings);
  node.prepare = countSlotItems;
  return node;
}

inline constexpr auto kSelDq =
    joined(joined(kSelAlone.inputs(), kLists), std::array{Binding{View::kDQ, TensorName::kDQ}, kDeltaNext});
inline constexpr auto kSelDqSlots = slotsBindings(kSelAlone);
inline constexpr std::array kSelSumSlots = {
    kDqSlots,        kRestSlots, kKeySlots,        kLists[1],
    kSelAlone.delta, kDeltaNext, kSelAlone.weight, Binding{View::kDQ, TensorName::kDQ}};
inline constexpr auto kSelDkv = joined(ofKeys(kSelAlone, Buffer::kDeltaNext).inputs(), kPieces);
inline constexpr auto kSelSum =
    joined(kPieces, std::array{Binding{View::kDK, TensorName::kDKSel}, Binding{View::kDV, TensorName::kDVSel}});
inline constexpr GraphNode kSelBwdNodes[] = {
    kSequencesNode,
    kDeltasNode,
    kOwnLengthsNode,
    kIndexCheckNode,
    kOwnCountsNode,
    kOwnStartsNode,
    kOwnFillNode,
    {.role = Role::kDq, .op = Operator::kSelDq, .isNeeded = byQueries, .bindings = kSelDq},
    kIndexSlotsNode,
    indexRangesNode(),
    dqSlotsNode(kSelDqSlots),
    slotsNode(Role::kSumSlots, Operator::kSumSlots, kSelSumSlots),
    {.role = Role::kDkv, .op = Operator::kSelDkv, .bindings = kSelDkv, .prepare = countPieces},
    {.role = Role::kSumParts, .op = Operator::kSumParts, .change = sumTokens, .bindings = kSelSum}};
inline constexpr GraphBuffer kSelBwdBuffers[] = {
    kTableBuffer,      kDeltaBuffer,      kDeltaNextBuffer,   kListLengthsBuffer, kBlockCountsBuffer,
    kBlockIndexBuffer, kEntrySlotsBuffer, kIndexRangesBuffer, kDqSlotsBuffer,     kRestSlotsBuffer,
    kKeySlotsBuffer,   kDkPiecesBuffer,   kDvPiecesBuffer};
inline constexpr Graph kSelBwd = {kSelBwdNodes, kSelBwdBuffers, Operator::kSelBwd};

// --- nsa_bwd: deltas and gates of all branches; then the gradient of the queries branch by branch, for a chunk of
// queries; then the gradients of keys.

// The gradients of q from the branches are added up as f32 in dq_sum, in the order cmp, sel, win, and the last branch
// rounds the sum. The branch cmp has a part in it if q serves q_cmp too.
template <int32_t kBranch>
void chainQueries(KernelCall &kernelCall, const Spec &spec, const WorkspaceLayout &, const Call &call) {
  const bool isApart = call[TensorName::kDQCmp].data != call[TensorName::kDQ].data;
  const int32_t chain = spec.branches & (isApart ? ~kBranchCmp : kAllBranches);
  const bool isIn = (chain & kBranch) != 0, isFirst = (chain & (kBranch - 1)) == 0, isLast = chain < 2 * kBranch;
  if (!isIn || isFirst)
    kernelCall[View::kDqBase] = {};
  if (kBranch == kBranchCmp)
    dropWindow(kernelCall);
  kernelCall[!isIn || isLast ? View::kDqSum : View::kDQ] = {};
}

// The gradient of `k` is also bound as the gradient of each branch whose keys are `k`.
inline void joinGradients(KernelCall &kernelCall, const Spec &, const WorkspaceLayout &layout, const Call &) {
  using enum View;
  setSplits(kernelCall, layout.parts.own);
  for (const auto &[joined, own] :
       {std::pair(kDK, std::array{kDKCmp, kDKSel, kDKWin}), std::pair(kDV, std::array{kDVCmp, kDVSel, kDVWin})})
    for (const View view : own)
      if (kernelCall[view].data == kernelCall[joined].data)
        kernelCall[view] = {};
}

// Where the caller has not bound what the forward pass computed, it is computed again.
constexpr std::array<Binding, 4> forward(const BranchNames &names, Buffer out) {
  return {{names.q, names.k, names.v, {.view = View::kOut, .buffer = out}}};
}
inline constexpr Binding kRecompress[] = {{View::kKComp, TensorName::kKComp, Buffer::kKComp},
                                          {View::kVComp, TensorName::kVComp, Buffer::kVComp}};
inline constexpr auto kForwardCmp = forward(kCmpOfAll, Buffer::kOutCmp);
inline constexpr auto kForwardSel = joined(forward(kSelOfAll, Buffer::kOutSel), std::array{kLists[0]});
inline constexpr auto kForwardWin = forward(kWinOfAll, Buffer::kOutWin);
constexpr GraphNode forwardNode(Role role, Operator op, int32_t branch, std::span<const Binding> bindings) {
  return {.role = role,
          .op = op,
          .branches = branch,
          .output = branch,
          .isChunked = true,
          .launch = GraphNode::Launch::kWithoutOutput,
          .bindings = bindings};
}

inline constexpr Binding kGatesBindings[] = {
    {.view = View::kOCmp, .tensor = TensorName::kOCmp, .buffer = Buffer::kOutCmp, .branches = kBranchCmp},
    {.view = View::kOSel, .tensor = TensorName::kOSel, .buffer = Buffer::kOutSel, .branches = kBranchSel},
    {.view = View::kOWin, .tensor = TensorName::kOWin, .buffer = Buffer::kOutWin, .branches = kBranchWin},
    {View::kGates, TensorName::kGates},
    {View::kDOut, TensorName::kDOut},
    {View::kDGates, TensorName::kDGates},
    {.view = View::kDeltaCmp, .buffer = Buffer::kDeltaCmp},
    {.view = View::kDeltaSel, .buffer = Buffer::kDeltaSel},
    {.view = View::kDeltaWin, .buffer = Buffer::kDeltaWin},
    {.view = View::kWeightCmp, .buffer = Buffer::kWeightCmp},
    {.view = View::kWeightSel, .buffer = Buffer::kWeightSel},
    {.view = View::kWeightWin, .buffer = Buffer::kWeightWin}};

constexpr auto dqBindings(const BranchNames &names, TensorName dQ) {
  return joined(names.inputs(),
                std::array{Binding{View::kDQ, dQ}, Binding{.view = View::kDqSum, .buffer = Buffer::kDqSum},
                           Binding{.view = View::kDqBase, .buffer = Buffer::kDqSum}});
}
inline constexpr auto kDqOfCmp = joined(dqBindings(kCmpOfAll, TensorName::kDQCmp), std::array{kDeltaNext});
inline constexpr Binding kDeltaNextSel = {.view = View::kDeltaNext, .buffer = Buffer::kDeltaNextSel};
inline constexpr auto kDqOfSel =
    joined(joined(dqBindings(kSelOfAll, TensorName::kDQ), kLists), std::array{kDeltaNextSel});
inline constexpr auto kSlotsOfSel = slotsBindings(kSelOfAll);
inline constexpr std::array kSumSlotsOfSel = {kDqSlots,
                                              kRestSlots,
                                              kKeySlots,
                                              kLists[1],
                                              kSelOfAll.delta,
                                              kDeltaNextSel,
                                              kSelOfAll.weight,
                                              Binding{View::kDQ, TensorName::kDQ},
                                              Binding{.view = View::kDqSum, .buffer = Buffer::kDqSum},
                                              Binding{.view = View::kDqBase, .buffer = Buffer::kDqSum}};
inline constexpr auto kDqOfWin = joined(dqBindings(kWinOfAll, TensorName::kDQ),
                                        std::array{Binding{.view = View::kDeltaNext, .buffer = Buffer::kDeltaNextWin}});

inline constexpr std::array kCmpParts = {Binding{.view = View::kDkParts, .buffer = Buffer::kDkCmpParts},
                                         Binding{.view = View::kDvParts, .buffer = Buffer::kDvCmpParts}};
inline constexpr std::array kWinParts = {Binding{.view = View::kDkParts, .buffer = Buffer::kDkParts},
                                         Binding{.view = View::kDvParts, .buffer = Buffer::kDvParts}};
inline constexpr std::array kCmpGradients = {
    Binding{.view = View::kDK, .buffer = Buffer::kDKComp, .unless = Buffer::kDkCmpParts},
    Binding{.view = View::kDV, .buffer = Buffer::kDVComp, .unless = Buffer::kDvCmpParts}};
inline constexpr std::array kCmpSums = {Binding{.view = View::kDK, .buffer = Buffer::kDKComp},
                                        Binding{.view = View::kDV, .buffer = Buffer::kDVComp},
                                        Binding{.view = View::kDKRest, .buffer = Buffer::kDKCompRest},
                                        Binding{.view = View::kDVRest, .buffer = Buffer::kDVCompRest}};
inline constexpr std::array kThroughBlocks = {
    Binding{.view = View::kDkBlocks, .buffer = Buffer::kDkBlocks, .order = Order::kRowHead},
    Binding{.view = View::kDvBlocks, .buffer = Buffer::kDvBlocks, .order = Order::kRowHead}};
inline constexpr auto kCompressOfAll = CompressGradientBindings::of(
    Buffer::kDKComp, Buffer::kDVComp, Buffer::kDKCompRest, Buffer::kDVCompRest, kThroughBlocks[0], kThroughBlocks[1]);
inline constexpr std::array kTokenGradients = {
    Binding{View::kDK, TensorName::kDK},       Binding{View::kDV, TensorName::kDV},
    Binding{View::kDKCmp, TensorName::kDKCmp}, Binding{View::kDVCmp, TensorName::kDVCmp},
    Binding{View::kDKSel, TensorName::kDKSel}, Binding{View::kDVSel, TensorName::kDVSel},
    Binding{View::kDKWin, TensorName::kDKWin}, Binding{View::kDVWin, TensorName::kDVWin}};
inline constexpr auto kDkvOfCmp =
    joined(ofKeys(kCmpOfAll, Buffer::kDeltaNext).inputs(), joined(kCmpParts, kCmpGradients));
inline constexpr auto kSumOfCmp = joined(kCmpParts, kCmpSums);
inline constexpr auto kDkvOfSel = joined(ofKeys(kSelOfAll, Buffer::kDeltaNextSel).inputs(), kPieces);
inline constexpr auto kDkvOfWin = joined(ofKeys(kWinOfAll, Buffer::kDeltaNextWin).inputs(), kWinParts);
inline constexpr auto kSumOfAll = joined(kPieces, kWinParts, kThroughBlocks, kTokenGradients);

// The gradients of compressed rows are rounded for products. Sums of them may cancel, so what rounding takes is kept.
inline bool sumsCmp(const Spec &spec, const Maxima &maxima) {
  return hasCmpParts(spec, maxima) || roundsGradients(spec);
}

inline constexpr auto kNsaBwdFirstNodes = std::to_array<GraphNode>(
    {kSequencesNode,
     {.role = Role::kCompress,
      .op = Operator::kCompress,
      .branches = kBranchCmp,
      .launch = GraphNode::Launch::kWithoutBlocks,
      .bindsOperands = true,
      .bindings = kRecompress},
     kOwnLengthsNode,
     kIndexCheckNode,
     kOwnCountsNode,
     kOwnStartsNode,
     kOwnFillNode,
     kIndexSlotsNode,
     forwardNode(Role::kCmp, Operator::kCmp, kBranchCmp, kForwardCmp),
     forwardNode(Role::kSel, Operator::kSel, kBranchSel, kForwardSel),
     forwardNode(Role::kWin, Operator::kWindow, kBranchWin, kForwardWin),
     {.role = Role::kGates, .op = Operator::kCombineBwd, .isChunked = true, .bindings = kGatesBindings},
     {.role = Role::kDqCmp,
      .op = Operator::kAttentionDq,
      .branches = kBranchCmp,
      .change = attendBlocks,
      .isChunked = true,
      .bindings = kDqOfCmp,
      .prepare = chainQueries<kBranchCmp>},
     {.role = Role::kDqSel,
      .op = Operator::kSelDq,
      .isNeeded = byQueries,
      .isChunked = true,
      .bindings = kDqOfSel,
      .prepare = chainQueries<kBranchSel>},
     indexRangesNode(),
     dqSlotsNode(kSlotsOfSel),
     {.role = Role::kSumSlots,
      .op = Operator::kSumSlots,
      .isNeeded = bySlots,
      .isChunked = true,
      .bindings = kSumSlotsOfSel,
      .prepare = chainQueries<kBranchSel>},
     {.role = Role::kDqWin,
      .op = Operator::kAttentionDq,
      .branches = kBranchWin,
      .change = attendTokens,
      .isChunked = true,
      .bindings = kDqOfWin,
      .prepare = chainQueries<kBranchWin>},
     {.role = Role::kDkvCmp,
      .op = Operator::kAttentionDkv,
      .branches = kBranchCmp,
      .change = attendBlocks,
      .bindings = kDkvOfCmp,
      .prepare = countCmpParts},
     {.role = Role::kSumCmp,
      .op = Operator::kSumParts,
      .branches = kBranchCmp,
      .isNeeded = sumsCmp,
      .change = sumBlocks,
      .bindings = kSumOfCmp,
      .prepare = countCmpParts},
     {.role = Role::kDkvSel,
      .op = Operator::kSelDkv,
      .branches = kBranchSel,
      .bindings = kDkvOfSel,
      .prepare = countPieces},
     {.role = Role::kDkvWin,
      .op = Operator::kAttentionDkv,
      .branches = kBranchWin,
      .change = attendTokens,
      .bindings = kDkvOfWin,
      .prepare = countParts}});

// --- the gradients of what no branch reads: zeros, from kernels that have nothing to add up. The queries see no key,
// the weights have no parts, and kSumParts has no parts of a branch that is off.
inline bool hasZeroQueries(const Spec &spec, const Maxima &) {
  return !spec.hasBranch(kBranchCmp) || spec.branches == kBranchCmp;
}
inline void attendReached(Spec &step, const Spec &whole) {
  if (whole.hasBranch(kBranchCmp))
    return attendBlocks(step, whole);
  attendTokens(step, whole);
  if (!whole.hasBranch(kBranchWin))
    step.window = std::numeric_limits<int32_t>::max();
}
inline void attendNothing(KernelCall &call, const Spec &, const WorkspaceLayout &, const Call &) {
  setScalar(call.scalars, Scalar::kWindow, 0);
  call[View::kWeight] = {}; // 0 times a gate that is NaN is NaN
}
inline bool hasZeroWeights(const Spec &spec, const Maxima &maxima) {
  return hasWeights(spec, maxima) && !spec.hasBranch(kBranchCmp);
}
inline void addNothing(KernelCall &call, const Spec &, const WorkspaceLayout &, const Call &) { setSplits(call, 0); }
// Of the branches that are on, the bindings of the last one count.
inline constexpr auto kZeroQueries =
    joined(kCmpOfAll.inputs(), kSelOfAll.inputs(), kWinOfAll.inputs(),
           std::array{Binding{.view = View::kDQ, .tensor = TensorName::kDQ, .branches = kBranchCmp},
                      Binding{.view = View::kDQ, .tensor = TensorName::kDQCmp, .branches = kBranchSel | kBranchWin}});
inline constexpr auto kNsaBwdLastNodes = std::to_array<GraphNode>({{.role = Role::kZeroQueries,
                                                                    .op = Operator::kAttentionDq,
                                                                    .isNeeded = hasZeroQueries,
                                                                    .change = attendReached,
                                                                    .launch = GraphNode::Launch::kForZeros,
                                                                    .bindings = kZeroQueries,
                                                                    .prepare = attendNothing},
                                                                   {.role = Role::kZeroWeights,
                                                                    .op = Operator::kCompressSums,
                                                                    .isNeeded = hasZeroWeights,
                                                                    .change = dropActivation,
                                                                    .launch = GraphNode::Launch::kForWeights,
                                                                    .bindings = kCompressOfAll.sums,
                                                                    .prepare = addNothing},
                                                                   {.role = Role::kSumParts,
                                                                    .op = Operator::kSumParts,
                                                                    .change = sumTokens,
                                                                    .bindings = kSumOfAll,
                                                                    .prepare = joinGradients}});
inline constexpr auto kNsaBwdNodes =
    joined(kNsaBwdFirstNodes, compressGradientNodes(kCompressOfAll, kBranchCmp), kNsaBwdLastNodes);
constexpr GraphBuffer rowsBuffer(Buffer buffer, Role maker) {
  return {buffer,
          maker,
          GraphBuffer::Rows::kTimes,
          GraphBuffer::Heads::kQuery,
          GraphBuffer::Columns::kOne,
          TensorRole::kStatistics};
}
constexpr GraphBuffer chunkBuffer(Buffer buffer, Role maker, GraphBuffer::Columns columns, TensorRole role) {
  return {buffer, maker, GraphBuffer::Rows::kChunk, GraphBuffer::Heads::kQuery, columns, role};
}
constexpr GraphBuffer blocksBuffer(Buffer buffer, Role maker, GraphBuffer::Columns columns, TensorRole role,
                                   bool (*isNeeded)(const Spec &) = nullptr) {
  return {.buffer = buffer,
          .maker = maker,
          .rows = GraphBuffer::Rows::kCompressed,
          .heads = GraphBuffer::Heads::kKv,
          .columns = columns,
          .role = role,
          .isNeeded = isNeeded};
}
inline constexpr auto kNsaBwdOwnBuffers = std::to_array<GraphBuffer>(
    {kTableBuffer,
     blocksBuffer(Buffer::kKComp, Role::kCompress, GraphBuffer::Columns::kQkDim, TensorRole::kIo),
     blocksBuffer(Buffer::kVComp, Role::kCompress, GraphBuffer::Columns::kVDim, TensorRole::kIo),
     chunkBuffer(Buffer::kOutCmp, Role::kCmp, GraphBuffer::Columns::kVDim, TensorRole::kIo),
     chunkBuffer(Buffer::kOutSel, Role::kSel, GraphBuffer::Columns::kVDim, TensorRole::kIo),
     chunkBuffer(Buffer::kOutWin, Role::kWin, GraphBuffer::Columns::kVDim, TensorRole::kIo),
     chunkBuffer(Buffer::kDqSum, Role::kGates, GraphBuffer::Columns::kQkDim, TensorRole::kStatistics),
     rowsBuffer(Buffer::kDeltaCmp, Role::kDqCmp),
     rowsBuffer(Buffer::kDeltaNext, Role::kDkvCmp),
     rowsBuffer(Buffer::kDeltaSel, Role::kDkvSel),
     rowsBuffer(Buffer::kDeltaWin, Role::kDqWin),
     rowsBuffer(Buffer::kDeltaNextSel, Role::kDkvSel),
     rowsBuffer(Buffer::kDeltaNextWin, Role::kDkvWin),
     rowsBuffer(Buffer::kWeightCmp, Role::kDqCmp),
     rowsBuffer(Buffer::kWeightSel, Role::kDkvSel),
     rowsBuffer(Buffer::kWeightWin, Role::kDqWin),
     blocksBuffer(Buffer::kDKComp, Role::kDkvCmp, GraphBuffer::Columns::kQkDim, TensorRole::kIo),
     blocksBuffer(Buffer::kDVComp, Role::kDkvCmp, GraphBuffer::Columns::kVDim, TensorRole::kIo),
     blocksBuffer(Buffer::kDKCompRest, Role::kSumCmp, GraphBuffer::Columns::kQkDim, TensorRole::kIo, roundsGradients),
     blocksBuffer(Buffer::kDVCompRest, Role::kSumCmp, GraphBuffer::Columns::kVDim, TensorRole::kIo, roundsGradients),
     partsBuffer(Buffer::kDkCmpParts, Role::kSumCmp, GraphBuffer::Rows::kKeys, GraphBuffer::Columns::kQkDim,
                 GraphBuffer::Copies::kCmpQueryParts),
     partsBuffer(Buffer::kDvCmpParts, Role::kSumCmp, GraphBuffer::Rows::kKeys, GraphBuffer::Columns::kVDim,
                 GraphBuffer::Copies::kCmpQueryParts),
     kListLengthsBuffer,
     kBlockCountsBuffer,
     kBlockIndexBuffer,
     kEntrySlotsBuffer,
     kIndexRangesBuffer,
     kDqSlotsBuffer,
     kRestSlotsBuffer,
     kKeySlotsBuffer,
     kDkPiecesBuffer,
     kDvPiecesBuffer,
     partsBuffer(Buffer::kDkParts, Role::kDkvWin, GraphBuffer::Rows::kTokens, GraphBuffer::Columns::kQkDim,
                 GraphBuffer::Copies::kQueryParts),
     partsBuffer(Buffer::kDvParts, Role::kDkvWin, GraphBuffer::Rows::kTokens, GraphBuffer::Columns::kVDim,
                 GraphBuffer::Copies::kQueryParts),
     partsBuffer(Buffer::kDkBlocks, Role::kDx, GraphBuffer::Rows::kTokens, GraphBuffer::Columns::kQkDim),
     partsBuffer(Buffer::kDvBlocks, Role::kDx, GraphBuffer::Rows::kTokens, GraphBuffer::Columns::kVDim)});
inline constexpr auto kNsaBwdBuffers = joined(kNsaBwdOwnBuffers, kCompressGradientBuffers);
inline constexpr Graph kNsaBwd = {kNsaBwdNodes, kNsaBwdBuffers, Operator::kNsaBwd};

} // namespace nsa
