// The graphs of the gradients of attention, and of the inverse of lists, which gradients read. docs/operators.md
// describes them.
// Thread-safety: constants.
#pragma once

#include "runtime/base/key_splits.h"
#include "runtime/engine/graph/shared_nodes.h"

#include <array>
#include <limits>

namespace nsa {

// The kernels of keys attend tokens, or compressed blocks. Tokens are compressed blocks of one token, and a window that
// holds all keys is none. So dense_bwd, window_bwd and the window branch of nsa_bwd share their kernels, and cmp_bwd
// and the compressed branch share theirs unless dS is split. Where phi has weights, the kernels of compressed keys
// split dS (split_ds). Keys of tokens are of no phi. `cmp_bwd` reads no cmp_kind, so its kernels must not depend on it.
inline void attendTokens(Spec &step, const Spec &whole) {
  step.cmpBlock = step.cmpStride = 1;
  step.cmpKind = CmpKind::kMean;
  if (!(fieldsOf(whole.op) & kWindowField))
    step.window = std::numeric_limits<int32_t>::max();
}
inline void attendBlocks(Spec &step, const Spec &whole) {
  step.window = std::numeric_limits<int32_t>::max();
  if (!(fieldsOf(whole.op) & kPhi))
    step.cmpKind = CmpKind::kMean;
}
// Where no branch selects, the sums of gradients are made in blocks of the default size.
inline void sumTokens(Spec &step, const Spec &whole) {
  attendTokens(step, whole);
  if (!whole.hasLists()) {
    step.selBlock = Spec().selBlock;
    step.selCount = Spec().selCount;
  }
}
// The sums of gradients of compressed rows have no selection. Their blocks have the default size, rounded up: the
// `sel_block` of each spec is a multiple of its `cmp_stride`.
inline void sumBlocks(Spec &step, const Spec &whole) {
  attendBlocks(step, whole);
  const int64_t stride = step.cmpStride, size = Spec().selBlock;
  step.selBlock = static_cast<int32_t>((size + stride - 1) / stride * stride);
  step.selCount = Spec().selCount;
}

inline constexpr Binding kDeltasBindings[] = {{View::kOut, TensorName::kOut},
                                              {View::kDOut, TensorName::kDOut},
                                              {View::kDelta, TensorName::kDelta, Buffer::kDelta}};
// Where a plan has partial gradients, the kernel of keys writes these, and another kernel adds them up.
inline bool hasQueryParts(const Spec &spec, const Maxima &maxima) { return GradientParts::make(spec, maxima).own > 1; }
inline bool hasCmpParts(const Spec &spec, const Maxima &maxima) { return GradientParts::make(spec, maxima).cmp > 1; }
inline void countParts(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setSplits(call, layout.parts.own);
}
// Compressed keys are attended without a window, whatever the window of nsa is.
inline void dropWindow(KernelCall &call) {
  setScalar(call.scalars, Scalar::kWindow, std::max(call.grid.maxSeqlenK, int64_t{1} << 30));
}
inline void countCmpParts(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setSplits(call, layout.parts.cmp);
  dropWindow(call);
}
inline int64_t itemQueriesOf(const KernelCall &call) {
  return static_cast<int64_t>(call.scalars[static_cast<size_t>(Scalar::kItemQueries)]);
}
// A program of `sel_dkv` serves a piece of the queries that list a block. A call has the item of its plan.
inline void setPieces(KernelCall &call, const Spec &spec) {
  call.grid.splits = piecesOfSequence(spec, itemQueriesOf(call), call.grid.maxSeqlenQ, call.grid.maxSeqlenK);
}
inline void countPieces(KernelCall &call, const Spec &spec, const WorkspaceLayout &, const Call &) {
  setPieces(call, spec);
}
// A program of `sel_dq_slots` serves an item of the queries of a chunk that list a block.
inline void setSlotItems(KernelCall &call, const Spec &spec) {
  const int64_t item = slotQueries(spec, itemQueriesOf(call));
  setScalar(call.scalars, Scalar::kItemQueries, item);
  setSplits(call, (call.grid.maxSeqlenQ + item - 1) / item);
}
inline void countSlotItems(KernelCall &call, const Spec &spec, const WorkspaceLayout &, const Call &) {
  setSlotItems(call, spec);
}

inline constexpr GraphNode kIndexCheckNode = {.role = Role::kIndexCheck,
                                              .op = Operator::kIndexCheck,
                                              .isNeeded = hasLists,
                                              .change = dropCompression,
                                              .launch = GraphNode::Launch::kWithIndex,
                                              .bindings = kOwnIndexBindings,
                                              .prepare = countPieces};

// The kernel of queries corrects delta, for the kernel of keys.
inline constexpr Binding kDeltaNext = {.view = View::kDeltaNext, .buffer = Buffer::kDeltaNext};
struct AttentionNames {
  TensorName q, k, v, dQ, dK, dV;
};
struct GradientBindings {
  std::array<Binding, 8> dq;
  std::array<Binding, 10> dkv;
  std::array<Binding, 4> sum;

  static constexpr GradientBindings of(const AttentionNames &names) {
    const Binding q = {View::kQ, names.q}, k = {View::kK, names.k}, v = {View::kV, names.v};
    const Binding dOut = {View::kDOut, TensorName::kDOut}, lse = {View::kLse, TensorName::kLse};
    const Binding delta = {View::kDelta, TensorName::kDelta, Buffer::kDelta};
    return {{q, k, v, dOut, lse, delta, {View::kDQ, names.dQ}, kDeltaNext},
            {q,
             k,
             v,
             dOut,
             lse,
             {.view = View::kDelta, .buffer = Buffer::kDeltaNext},
             {.view = View::kDK, .tensor = names.dK, .unless = Buffer::kDkParts},
             {.view = View::kDV, .tensor = names.dV, .unless = Buffer::kDvParts},
             {.view = View::kDkParts, .buffer = Buffer::kDkParts},
             {.view = View::kDvParts, .buffer = Buffer::kDvParts}},
            {{{.view = View::kDkParts, .buffer = Buffer::kDkParts},
              {.view = View::kDvParts, .buffer = Buffer::kDvParts},
              {View::kDK, names.dK},
              {View::kDV, names.dV}}}};
  }
};
inline constexpr GraphNode kDeltasNode = {.role = Role::kDeltas, .op = Operator::kDeltas, .bindings = kDeltasBindings};

using Generalize = void (*)(Spec &step, const Spec &whole);
constexpr std::array<GraphNode, 5> gradientNodes(const GradientBindings &bindings, Generalize attend, Generalize sum) {
  return {{kSequencesNode,
           kDeltasNode,
           {.role = Role::kDq, .op = Operator::kAttentionDq, .change = attend, .bindings = bindings.dq},
           {.role = Role::kDkv,
            .op = Operator::kAttentionDkv,
            .change = attend,
            .bindings = bindings.dkv,
            .prepare = countParts},
           {.role = Role::kSumParts,
            .op = Operator::kSumParts,
            .isNeeded = hasQueryParts,
            .change = sum,
            .bindings = bindings.sum,
            .prepare = countParts}}};
}
constexpr GraphBuffer partsBuffer(Buffer buffer, Role maker, GraphBuffer::Rows rows, GraphBuffer::Columns columns,
                                  GraphBuffer::Copies copies = GraphBuffer::Copies::kOne) {
  return {buffer, maker, rows, GraphBuffer::Heads::kKv, columns, TensorRole::kStatistics, copies};
}
inline constexpr GraphBuffer kDeltaBuffer = {Buffer::kDelta,
                                             Role::kDeltas,
                                             GraphBuffer::Rows::kTimes,
                                             GraphBuffer::Heads::kQuery,
                                             GraphBuffer::Columns::kOne,
                                             TensorRole::kStatistics};
inline constexpr GraphBuffer kDeltaNextBuffer = {Buffer::kDeltaNext,         Role::kDkv,
                                                 GraphBuffer::Rows::kTimes,  GraphBuffer::Heads::kQuery,
                                                 GraphBuffer::Columns::kOne, TensorRole::kStatistics};
inline constexpr GraphBuffer kGradientBuffers[] = {
    kTableBuffer, kDeltaBuffer, kDeltaNextBuffer,
    partsBuffer(Buffer::kDkParts, Role::kSumParts, GraphBuffer::Rows::kKeys, GraphBuffer::Columns::kQkDim,
                GraphBuffer::Copies::kQueryParts),
    partsBuffer(Buffer::kDvParts, Role::kSumParts, GraphBuffer::Rows::kKeys, GraphBuffer::Columns::kVDim,
                GraphBuffer::Copies::kQueryParts)};

inline constexpr auto kTokenBindings = GradientBindings::of(
    {TensorName::kQ, TensorName::kKWin, TensorName::kVWin, TensorName::kDQ, TensorName::kDKWin, TensorName::kDVWin});
inline constexpr auto kBlockBindings =
    GradientBindings::of({TensorName::kQCmp, TensorName::kKComp, TensorName::kVComp, TensorName::kDQCmp,
                          TensorName::kDKComp, TensorName::kDVComp});
inline constexpr auto kTokenGradientNodes = gradientNodes(kTokenBindings, attendTokens, sumTokens);
inline constexpr auto kBlockGradientNodes = gradientNodes(kBlockBindings, attendBlocks, sumBlocks);
inline constexpr Graph kDenseBwd = {kTokenGradientNodes, kGradientBuffers, Operator::kDenseBwd};
inline constexpr Graph kWindowBwd = {kTokenGradientNodes, kGradientBuffers, Operator::kWindowBwd};
inline constexpr Graph kCmpBwd = {kBlockGradientNodes, kGradientBuffers, Operator::kCmpBwd};

inline constexpr GraphNode kInvertNodes[] = {kSequencesNode, kIndexLengthsNode, kIndexCountsNode, kIndexStartsNode,
                                             kIndexFillNode};
inline constexpr GraphBuffer kInvertBuffers[] = {kTableBuffer, kListLengthsBuffer, kBlockCountsBuffer};
inline constexpr Graph kInvert = {kInvertNodes, kInvertBuffers, Operator::kInvert};

} // namespace nsa
