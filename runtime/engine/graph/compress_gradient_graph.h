// The graph of the gradients of compression. docs/operators.md describes it.
// Thread-safety: constants and pure functions.
#pragma once

#include "runtime/engine/graph/shared_nodes.h"
#include "runtime/engine/graph/workspace.h"

#include <array>

namespace nsa {

inline bool hasWeights(const Spec &spec, const Maxima &) { return spec.cmpKind != CmpKind::kMean; }
inline bool hasHiddenValues(const Spec &spec, const Maxima &) { return spec.cmpKind == CmpKind::kMlp; }
inline bool roundsGradients(const Spec &spec) { return spec.dtype != DType::kF32; }
// One kernel serves all activations.
inline void dropActivation(Spec &step, const Spec &) { step.mlpActivation = Activation::kRelu; }

// What the kernels read and write. Most of them know one product of tokens and weights, which is the first one of a
// perceptron: dz is the gradient of what it gives.
struct CompressGradientBindings {
  std::array<Binding, 20> dz;
  std::array<Binding, 12> dx;
  std::array<Binding, 23> dw;
  std::array<Binding, 13> db;
  std::array<Binding, 22> sums;

  // The gradients of compressed rows are the caller's, or lie in buffers, with what rounding took from them. `dK` and
  // `dV` are the gradients of tokens.
  static constexpr CompressGradientBindings of(Buffer dKComp, Buffer dVComp, Buffer dKRest, Buffer dVRest,
                                               const Binding &dK, const Binding &dV) {
    const Binding ofKeys = {View::kDKComp, TensorName::kDKComp, dKComp};
    const Binding ofValues = {View::kDVComp, TensorName::kDVComp, dVComp};
    const Binding given[] = {
        {.view = View::kDzK, .tensor = TensorName::kDKComp, .buffer = dKComp, .unless = Buffer::kDzK},
        {.view = View::kDzV, .tensor = TensorName::kDVComp, .buffer = dVComp, .unless = Buffer::kDzV}};
    const Binding dzK = {.view = View::kDzK, .buffer = Buffer::kDzK},
                  dzV = {.view = View::kDzV, .buffer = Buffer::kDzV};
    const Binding restK = {.view = View::kDzRestK, .buffer = Buffer::kDzRestK},
                  restV = {.view = View::kDzRestV, .buffer = Buffer::kDzRestV};
    const Binding givenRests[] = {{.view = View::kDzRestK, .buffer = dKRest, .unless = Buffer::kDzK},
                                  {.view = View::kDzRestV, .buffer = dVRest, .unless = Buffer::kDzV}};
    const Binding ofKeysRest = {.view = View::kDKRest, .buffer = dKRest},
                  ofValuesRest = {.view = View::kDVRest, .buffer = dVRest};
    const Binding hK = {.view = View::kHK, .buffer = Buffer::kHK}, hV = {.view = View::kHV, .buffer = Buffer::kHV};
    const Binding k = {View::kK, TensorName::kKCmp}, v = {View::kV, TensorName::kVCmp};
    const Binding w[] = {{View::kWK, TensorName::kWK},
                         {View::kWV, TensorName::kWV},
                         {View::kWK, TensorName::kW1K},
                         {View::kWV, TensorName::kW1V}};
    const Binding dw[] = {{View::kDWK, TensorName::kDWK},   {View::kDWV, TensorName::kDWV},
                          {View::kDWK, TensorName::kDW1K},  {View::kDWV, TensorName::kDW1V},
                          {View::kDW2K, TensorName::kDW2K}, {View::kDW2V, TensorName::kDW2V}};
    const Binding weightParts = {
        .view = View::kWeightParts, .buffer = Buffer::kWeightParts, .order = Order::kCopyRowColumn};
    return {{{k,
              v,
              {View::kPeK, TensorName::kPeK},
              {View::kPeV, TensorName::kPeV},
              {View::kW1K, TensorName::kW1K},
              {View::kW1V, TensorName::kW1V},
              {View::kB1K, TensorName::kB1K},
              {View::kB1V, TensorName::kB1V},
              {View::kW2K, TensorName::kW2K},
              {View::kW2V, TensorName::kW2V},
              ofKeys,
              ofValues,
              hK,
              hV,
              dzK,
              dzV,
              restK,
              restV,
              ofKeysRest,
              ofValuesRest}},
            {{given[0], given[1], givenRests[0], givenRests[1], dzK, dzV, w[0], w[1], w[2], w[3], dK, dV}},
            {{k,     v,     given[0], given[1], givenRests[0], givenRests[1], dzK,        dzV,
              restK, restV, hK,       hV,       ofKeys,        ofValues,      ofKeysRest, ofValuesRest,
              dw[0], dw[1], dw[2],    dw[3],    dw[4],         dw[5],         weightParts}},
            {{given[0],
              given[1],
              givenRests[0],
              givenRests[1],
              dzK,
              dzV,
              restK,
              restV,
              ofKeys,
              ofValues,
              ofKeysRest,
              ofValuesRest,
              {.view = View::kBiasElements, .buffer = Buffer::kBiasParts, .order = Order::kCopyRowColumn}}},
            {{weightParts,
              {.view = View::kBiasParts, .buffer = Buffer::kBiasParts, .order = Order::kCopyRowColumn},
              w[0],
              w[1],
              w[2],
              w[3],
              {View::kPeKElements, TensorName::kPeK},
              {View::kPeVElements, TensorName::kPeV},
              dw[0],
              dw[1],
              dw[2],
              dw[3],
              dw[4],
              dw[5],
              {View::kDBK, TensorName::kDBK},
              {View::kDBV, TensorName::kDBV},
              {View::kDBK, TensorName::kDB1K},
              {View::kDBV, TensorName::kDB1V},
              {View::kDPeK, TensorName::kDPeK},
              {View::kDPeV, TensorName::kDPeV},
              {View::kDB2K, TensorName::kDB2K},
              {View::kDB2V, TensorName::kDB2V}}}};
  }
};

inline void countWeightParts(KernelCall &call, const Spec &, const WorkspaceLayout &layout, const Call &) {
  setSplits(call, layout.parts.weights);
}
// A graph of which this is a part may switch the branch off.
constexpr std::array<GraphNode, 5> compressGradientNodes(const CompressGradientBindings &bindings, int32_t branches) {
  const auto weightNode = [&](Role role, Operator op, std::span<const Binding> own) {
    return GraphNode{.role = role,
                     .op = op,
                     .branches = branches,
                     .isNeeded = hasWeights,
                     .change = dropActivation,
                     .launch = GraphNode::Launch::kForWeights,
                     .bindings = own,
                     .prepare = countWeightParts};
  };
  return {{{.role = Role::kDz,
            .op = Operator::kCompressDz,
            .branches = branches,
            .isNeeded = hasHiddenValues,
            .bindings = bindings.dz},
           {.role = Role::kDx,
            .op = Operator::kCompressDx,
            .branches = branches,
            .change = dropActivation,
            .bindings = bindings.dx},
           weightNode(Role::kDw, Operator::kCompressDw, bindings.dw),
           weightNode(Role::kDb, Operator::kCompressDb, bindings.db),
           weightNode(Role::kSums, Operator::kCompressSums, bindings.sums)}};
}

constexpr GraphBuffer hiddenBuffer(Buffer buffer, GraphBuffer::Heads heads, bool (*isNeeded)(const Spec &) = nullptr) {
  return {.buffer = buffer,
          .maker = Role::kDz,
          .rows = GraphBuffer::Rows::kCompressed,
          .heads = heads,
          .columns = GraphBuffer::Columns::kHidden,
          .role = TensorRole::kIo,
          .isNeeded = isNeeded};
}
constexpr GraphBuffer weightsBuffer(Buffer buffer, GraphBuffer::Rows rows) {
  return {buffer,
          Role::kSums,
          rows,
          GraphBuffer::Heads::kNone,
          GraphBuffer::Columns::kWeights,
          TensorRole::kStatistics,
          GraphBuffer::Copies::kWeightParts};
}
inline constexpr std::array<GraphBuffer, 8> kCompressGradientBuffers = {
    {hiddenBuffer(Buffer::kHK, GraphBuffer::Heads::kKvWithRests),
     hiddenBuffer(Buffer::kHV, GraphBuffer::Heads::kKvWithRests), hiddenBuffer(Buffer::kDzK, GraphBuffer::Heads::kKv),
     hiddenBuffer(Buffer::kDzV, GraphBuffer::Heads::kKv),
     hiddenBuffer(Buffer::kDzRestK, GraphBuffer::Heads::kKv, roundsGradients),
     hiddenBuffer(Buffer::kDzRestV, GraphBuffer::Heads::kKv, roundsGradients),
     weightsBuffer(Buffer::kWeightParts, GraphBuffer::Rows::kWeights),
     weightsBuffer(Buffer::kBiasParts, GraphBuffer::Rows::kBiases)}};

inline constexpr auto kCompressBwdBindings =
    CompressGradientBindings::of(Buffer::kNone, Buffer::kNone, Buffer::kNone, Buffer::kNone,
                                 {View::kDK, TensorName::kDKCmp}, {View::kDV, TensorName::kDVCmp});
inline constexpr auto kCompressBwdNodes =
    joined(std::array{kSequencesNode}, compressGradientNodes(kCompressBwdBindings, 0));
inline constexpr auto kCompressBwdBuffers = joined(std::array{kTableBuffer}, kCompressGradientBuffers);
inline constexpr Graph kCompressBwd = {kCompressBwdNodes, kCompressBwdBuffers, Operator::kCompressBwd};

} // namespace nsa
