// What graphs of several operators have in common (graph.h): the kernel that checks the lengths of a packed batch, the
// kernels that invert lists of blocks, the spec of a step that compresses nothing, and the number of parts of a sum.
// Thread-safety: constants and pure functions.
#pragma once

#include "runtime/engine/graph/graph.h"
#include "runtime/engine/graph/workspace.h"
#include "runtime/model/operators.h"

#include <algorithm>
#include <array>

namespace nsa {

// One array behind the other.
template <typename T, size_t... kSizes> constexpr auto joined(const std::array<T, kSizes> &...arrays) {
  std::array<T, (kSizes + ...)> result{};
  auto next = result.begin();
  ((next = std::ranges::copy(arrays, next).out), ...);
  return result;
}

inline constexpr int32_t kScoredBranches = kBranchCmp | kBranchSel; // those that need compressed keys

// Where nothing is compressed, one kernel serves whatever cmp_block and cmp_stride are.
inline void dropCompression(Spec &step, const Spec &whole) {
  if (!whole.compresses())
    step.cmpBlock = step.cmpStride = 1;
}

inline bool isPacked(const Spec &spec, const Maxima &) {
  return spec.layout == Layout::kPacked && readsLengths(spec.op);
}

// Tells a kernel how many programs share what is summed, each of which writes a part.
inline void setSplits(KernelCall &call, int64_t splits) {
  call.grid.splits = splits;
  setScalar(call.scalars, Scalar::kSplits, splits);
}

inline constexpr Binding kLengths[] = {{View::kCacheSeqlens, TensorName::kCacheSeqlens},
                                       {View::kBlockTable, TensorName::kBlockTable},
                                       {View::kCuSeqlensQ, TensorName::kCuSeqlensQ},
                                       {View::kCuSeqlensK, TensorName::kCuSeqlensK},
                                       {View::kKOffset, TensorName::kKOffset}};
inline constexpr GraphNode kSequencesNode = {.role = Role::kSequences,
                                             .op = Operator::kSequences,
                                             .isNeeded = isPacked,
                                             .change = dropCompression,
                                             .bindings = kLengths};
inline constexpr GraphBuffer kTableBuffer = {Buffer::kTable,
                                             Role::kSequences,
                                             GraphBuffer::Rows::kSequences,
                                             GraphBuffer::Heads::kNone,
                                             GraphBuffer::Columns::kTableFields,
                                             TensorRole::kIndex};

// The kernels that invert lists of blocks, and their buffers.
inline bool hasLists(const Spec &spec, const Maxima &) { return spec.hasLists(); }
inline void countIndexParts(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setSplits(call, layout.indexParts);
}

constexpr std::array<Binding, 5> indexBindings(Buffer index, Buffer slots) {
  return {{{View::kBlockList, TensorName::kBlockList},
           {View::kListLengths, Binding::kNoTensor, Buffer::kListLengths},
           {View::kBlockCounts, Binding::kNoTensor, Buffer::kBlockCounts, Order::kEntryRowHeadColumn},
           {View::kBlockIndex, TensorName::kBlockIndex, index, Order::kRowHeadColumn},
           {.view = View::kEntrySlots, .buffer = slots, .order = Order::kRowHeadColumn}}};
}
inline constexpr auto kIndexBindings = indexBindings(Buffer::kNone, Buffer::kNone);
// The plan makes the inverse where the caller has not bound one.
inline constexpr auto kOwnIndexBindings = indexBindings(Buffer::kBlockIndex, Buffer::kEntrySlots);
// `index_starts` makes places of the counts.
constexpr std::array<Binding, 2> startsBindings(const std::array<Binding, 5> &ofIndex) {
  return {ofIndex[2], ofIndex[3]};
}
inline constexpr auto kStartsBindings = startsBindings(kIndexBindings);
inline constexpr auto kOwnStartsBindings = startsBindings(kOwnIndexBindings);
constexpr GraphNode indexNode(Role role, Operator op, std::span<const Binding> bindings, GraphNode::Launch launch,
                              bool (*isNeeded)(const Spec &, const Maxima &) = hasLists) {
  return {.role = role,
          .op = op,
          .isNeeded = isNeeded,
          .change = dropCompression,
          .launch = launch,
          .bindings = bindings,
          .prepare = countIndexParts};
}
inline constexpr GraphNode kIndexLengthsNode =
    indexNode(Role::kIndexLengths, Operator::kIndexLengths, kIndexBindings, GraphNode::Launch::kAlways);
inline constexpr GraphNode kIndexCountsNode =
    indexNode(Role::kIndexCounts, Operator::kIndexCounts, kIndexBindings, GraphNode::Launch::kAlways);
inline constexpr GraphNode kIndexStartsNode =
    indexNode(Role::kIndexStarts, Operator::kIndexStarts, kStartsBindings, GraphNode::Launch::kAlways);
inline constexpr GraphNode kIndexFillNode =
    indexNode(Role::kIndexFill, Operator::kIndexFill, kIndexBindings, GraphNode::Launch::kAlways);
// Selection makes the inverse on request, of the lists of all queries, behind all chunks of queries.
inline bool makesIndex(const Spec &spec, const Maxima &) { return spec.makeIndex; }
constexpr GraphNode askedNode(Role role, Operator op, std::span<const Binding> bindings = kIndexBindings) {
  return indexNode(role, op, bindings, GraphNode::Launch::kWithIndex, makesIndex);
}
inline constexpr std::array kAskedIndexNodes = {askedNode(Role::kIndexLengths, Operator::kIndexLengths),
                                                askedNode(Role::kIndexCounts, Operator::kIndexCounts),
                                                askedNode(Role::kIndexStarts, Operator::kIndexStarts, kStartsBindings),
                                                askedNode(Role::kIndexFill, Operator::kIndexFill)};
// Gradients make the inverse for calls that do not bind one.
inline constexpr GraphNode kOwnLengthsNode =
    indexNode(Role::kIndexLengths, Operator::kIndexLengths, kOwnIndexBindings, GraphNode::Launch::kAlways);
inline constexpr GraphNode kOwnCountsNode =
    indexNode(Role::kIndexCounts, Operator::kIndexCounts, kOwnIndexBindings, GraphNode::Launch::kWithoutIndex);
inline constexpr GraphNode kOwnStartsNode =
    indexNode(Role::kIndexStarts, Operator::kIndexStarts, kOwnStartsBindings, GraphNode::Launch::kWithoutIndex);
inline constexpr GraphNode kOwnFillNode =
    indexNode(Role::kIndexFill, Operator::kIndexFill, kOwnIndexBindings, GraphNode::Launch::kWithoutIndex);
inline constexpr GraphBuffer kBlockIndexBuffer = {Buffer::kBlockIndex,          Role::kIndexFill,
                                                  GraphBuffer::Rows::kEntries,  GraphBuffer::Heads::kKv,
                                                  GraphBuffer::Columns::kIndex, TensorRole::kIndex};
inline constexpr GraphBuffer kListLengthsBuffer = {Buffer::kListLengths,       Role::kIndexLengths,
                                                   GraphBuffer::Rows::kTimes,  GraphBuffer::Heads::kKv,
                                                   GraphBuffer::Columns::kOne, TensorRole::kIndex};
inline constexpr GraphBuffer kBlockCountsBuffer = {Buffer::kBlockCounts,
                                                   Role::kIndexCounts,
                                                   GraphBuffer::Rows::kSequences,
                                                   GraphBuffer::Heads::kKv,
                                                   GraphBuffer::Columns::kScoreBlocks,
                                                   TensorRole::kIndex,
                                                   GraphBuffer::Copies::kIndexParts};

// The branches of nsa. Decode attends what is in its cache, and nsa the caller's tensors.
struct Keys {
  Binding k, v;
};
constexpr std::array<Binding, 6> cmpBindings(const Keys &keys) {
  return {{{View::kQ, TensorName::kQCmp},
           keys.k,
           keys.v,
           {View::kLse, TensorName::kLseCmp, Buffer::kLse},
           {View::kOut, TensorName::kOCmp, Buffer::kOutCmp},
           {.view = View::kReads, .buffer = Buffer::kReadsCmp, .ifReads = true}}};
}
constexpr std::array<Binding, 4> selectBindings(const Keys &keys) {
  return {{{View::kQ, TensorName::kQCmp},
           keys.k,
           {View::kLse, TensorName::kLseCmp, Buffer::kLse},
           {View::kBlockList, TensorName::kBlockList, Buffer::kBlockList, Order::kEntryRowHeadColumn}}};
}
constexpr std::array<Binding, 7> selBindings(const Keys &keys) {
  return {{{View::kQ, TensorName::kQ},
           keys.k,
           keys.v,
           {View::kBlockList, TensorName::kBlockList, Buffer::kBlockList, Order::kEntryRowHeadColumn},
           {View::kLse, TensorName::kLseSel},
           {View::kOut, TensorName::kOSel, Buffer::kOutSel},
           {.view = View::kReads, .buffer = Buffer::kReadsSel, .ifReads = true}}};
}
constexpr std::array<Binding, 6> winBindings(const Keys &keys) {
  return {{{View::kQ, TensorName::kQ},
           keys.k,
           keys.v,
           {View::kLse, TensorName::kLseWin},
           {View::kOut, TensorName::kOWin, Buffer::kOutWin},
           {.view = View::kReads, .buffer = Buffer::kReadsWin, .ifReads = true}}};
}
inline constexpr Binding kCombineBindings[] = {
    {View::kGates, TensorName::kGates},
    {View::kOut, TensorName::kOut},
    {View::kReads, TensorName::kReads},
    {.view = View::kOCmp, .tensor = TensorName::kOCmp, .buffer = Buffer::kOutCmp, .branches = kBranchCmp},
    {.view = View::kOSel, .tensor = TensorName::kOSel, .buffer = Buffer::kOutSel, .branches = kBranchSel},
    {.view = View::kOWin, .tensor = TensorName::kOWin, .buffer = Buffer::kOutWin, .branches = kBranchWin},
    {.view = View::kReadsCmp, .buffer = Buffer::kReadsCmp, .branches = kBranchCmp, .ifReads = true},
    {.view = View::kReadsSel, .buffer = Buffer::kReadsSel, .branches = kBranchSel, .ifReads = true},
    {.view = View::kReadsWin, .buffer = Buffer::kReadsWin, .branches = kBranchWin, .ifReads = true},
};

using Change = void (*)(Spec &, const Spec &);
constexpr GraphNode cmpNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kCmp,
          .op = Operator::kCmp,
          .branches = kScoredBranches,
          .change = change,
          .output = kBranchCmp,
          .isChunked = true,
          .bindings = bindings};
}
constexpr GraphNode selectNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kSelect,
          .op = Operator::kSelect,
          .branches = kBranchSel,
          .change = change,
          .isChunked = true,
          .launch = GraphNode::Launch::kForLists,
          .bindings = bindings};
}
constexpr GraphNode selNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kSel,
          .op = Operator::kSel,
          .branches = kBranchSel,
          .change = change,
          .output = kBranchSel,
          .shortcut = kSelIsDense,
          .shortcutOp = Operator::kDense,
          .isChunked = true,
          .bindings = bindings};
}
constexpr GraphNode winNode(Change change, std::span<const Binding> bindings) {
  return {.role = Role::kWin,
          .op = Operator::kWindow,
          .branches = kBranchWin,
          .change = change,
          .output = kBranchWin,
          .shortcut = kWinIsDense,
          .shortcutOp = Operator::kDense,
          .isChunked = true,
          .bindings = bindings};
}
inline constexpr GraphNode kCombineNode = {
    .role = Role::kCombine, .op = Operator::kCombine, .isChunked = true, .bindings = kCombineBindings};

inline constexpr GraphBuffer kLseBuffer = {Buffer::kLse,
                                           Role::kCmp,
                                           GraphBuffer::Rows::kChunk,
                                           GraphBuffer::Heads::kQuery,
                                           GraphBuffer::Columns::kOne,
                                           TensorRole::kStatistics};
inline constexpr GraphBuffer kListBuffer = {
    Buffer::kBlockList, Role::kCmp, GraphBuffer::Rows::kChunk, GraphBuffer::Heads::kKv, GraphBuffer::Columns::kSelCount,
    TensorRole::kIndex};
constexpr GraphBuffer outBuffer(Buffer buffer, Role maker) {
  return {buffer,         maker, GraphBuffer::Rows::kChunk, GraphBuffer::Heads::kQuery, GraphBuffer::Columns::kVDim,
          TensorRole::kIo};
}
constexpr GraphBuffer readsBuffer(Buffer buffer, Role maker) {
  return {buffer,
          maker,
          GraphBuffer::Rows::kChunk,
          GraphBuffer::Heads::kKv,
          GraphBuffer::Columns::kOne,
          TensorRole::kIndex};
}

} // namespace nsa
