// The graphs of the gradients of attention, and of the inverse of lists, which gradients read. docs/operators.md
// describes them.
// Thread-safety: constants.
#pragma once

#include "runtime/base/key_splits.h"
#include "runtime/engine/graph/shared_nodes.h"

#include <array>
#include <limits>

namespace nsa {

// The operators dense_bwd, window_bwd and cmp_bwd share their kernels: the keys of dense and window are blocks of one
// token, and the window of dense and cmp holds all keys.
inline void generalize(Spec &step, const Spec &whole) {
  dropCompression(step, whole);
  if (!(fieldsOf(whole.op) & kWindowField))
    step.window = std::numeric_limits<int32_t>::max();
}

inline constexpr Binding kDeltasBindings[] = {{View::kOut, TensorName::kOut},
                                              {View::kDOut, TensorName::kDOut},
                                              {View::kDelta, TensorName::kDelta, Buffer::kDelta}};
// Where a plan has partial gradients, the kernel of keys writes these, and another kernel adds them up.
inline bool hasQueryParts(const Spec &spec, const Maxima &maxima) { return queryParts(spec, maxima) > 1; }

struct AttentionNames {
  TensorName q, k, v, dQ, dK, dV;
};
struct GradientBindings {
  std::array<Binding, 7> dq;
  std::array<Binding, 10> dkv;
  std::array<Binding, 4> sum;

  static constexpr GradientBindings of(const AttentionNames &names) {
    const Binding q = {View::kQ, names.q}, k = {View::kK, names.k}, v = {View::kV, names.v};
    const Binding dOut = {View::kDOut, TensorName::kDOut}, lse = {View::kLse, TensorName::kLse};
    const Binding delta = {View::kDelta, TensorName::kDelta, Buffer::kDelta};
    return {{q, k, v, dOut, lse, delta, {View::kDQ, names.dQ}},
            {q,
             k,
             v,
             dOut,
             lse,
             delta,
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
constexpr std::array<GraphNode, 5> gradientNodes(const GradientBindings &bindings) {
  return {{kSequencesNode,
           {.role = Role::kDeltas, .op = Operator::kDeltas, .bindings = kDeltasBindings},
           {.role = Role::kDq, .op = Operator::kAttentionDq, .change = generalize, .bindings = bindings.dq},
           {.role = Role::kDkv,
            .op = Operator::kAttentionDkv,
            .change = generalize,
            .bindings = bindings.dkv,
            .prepare = countParts},
           {.role = Role::kSumParts,
            .op = Operator::kSumParts,
            .isNeeded = hasQueryParts,
            .change = generalize,
            .bindings = bindings.sum,
            .prepare = countParts}}};
}
inline constexpr GraphBuffer kGradientBuffers[] = {
    kTableBuffer,
    {Buffer::kDelta, Role::kDeltas, GraphBuffer::Rows::kChunk, GraphBuffer::Heads::kQuery, GraphBuffer::Columns::kOne,
     TensorRole::kStatistics},
    {Buffer::kDkParts, Role::kSumParts, GraphBuffer::Rows::kKeys, GraphBuffer::Heads::kKv, GraphBuffer::Columns::kQkDim,
     TensorRole::kStatistics, GraphBuffer::Copies::kParts},
    {Buffer::kDvParts, Role::kSumParts, GraphBuffer::Rows::kKeys, GraphBuffer::Heads::kKv, GraphBuffer::Columns::kVDim,
     TensorRole::kStatistics, GraphBuffer::Copies::kParts}};

inline constexpr auto kTokenBindings = GradientBindings::of(
    {TensorName::kQ, TensorName::kKWin, TensorName::kVWin, TensorName::kDQ, TensorName::kDKWin, TensorName::kDVWin});
inline constexpr auto kBlockBindings =
    GradientBindings::of({TensorName::kQCmp, TensorName::kKComp, TensorName::kVComp, TensorName::kDQCmp,
                          TensorName::kDKComp, TensorName::kDVComp});
inline constexpr auto kTokenGradientNodes = gradientNodes(kTokenBindings);
inline constexpr auto kBlockGradientNodes = gradientNodes(kBlockBindings);
inline constexpr Graph kDenseBwd = {kTokenGradientNodes, kGradientBuffers, Operator::kDenseBwd};
inline constexpr Graph kWindowBwd = {kTokenGradientNodes, kGradientBuffers, Operator::kWindowBwd};
inline constexpr Graph kCmpBwd = {kBlockGradientNodes, kGradientBuffers, Operator::kCmpBwd};

inline constexpr GraphNode kInvertNodes[] = {kSequencesNode, kIndexLengthsNode, kIndexCountsNode, kIndexFillNode};
inline constexpr GraphBuffer kInvertBuffers[] = {kTableBuffer, kListLengthsBuffer, kBlockCountsBuffer};
inline constexpr Graph kInvert = {kInvertNodes, kInvertBuffers, Operator::kInvert};

} // namespace nsa
