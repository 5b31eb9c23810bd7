// The graph of the gradients of compression. docs/operators.md describes it.
// Thread-safety: constants and pure functions.
#pragma once

#include "runtime/engine/graph/shared_nodes.h"

namespace nsa {

inline bool hasWeights(const Spec &spec, const Maxima &) { return spec.cmpKind != CmpKind::kMean; }
inline bool hasHiddenValues(const Spec &spec, const Maxima &) { return spec.cmpKind == CmpKind::kMlp; }
// One kernel serves all activations.
inline void dropActivation(Spec &step, const Spec &) { step.mlpActivation = Activation::kRelu; }

// Most kernels know one product of tokens and weights, which is the first one of a perceptron: dz is the gradient of
// what it gives.
#define NSA_DZ_BINDINGS                                                                                                \
  {.view = View::kDzK, .tensor = TensorName::kDKComp, .unless = Buffer::kDzK},                                         \
      {.view = View::kDzV, .tensor = TensorName::kDVComp, .unless = Buffer::kDzV},                                     \
      {.view = View::kDzK, .buffer = Buffer::kDzK}, {                                                                  \
    .view = View::kDzV, .buffer = Buffer::kDzV                                                                         \
  }
#define NSA_FIRST_WEIGHTS                                                                                              \
  {View::kWK, TensorName::kWK}, {View::kWV, TensorName::kWV}, {View::kWK, TensorName::kW1K}, {                         \
    View::kWV, TensorName::kW1V                                                                                        \
  }
#define NSA_GRADIENTS_OF_WEIGHTS                                                                                       \
  {View::kDWK, TensorName::kDWK}, {View::kDWV, TensorName::kDWV}, {View::kDWK, TensorName::kDW1K},                     \
      {View::kDWV, TensorName::kDW1V}, {View::kDW2K, TensorName::kDW2K}, {                                             \
    View::kDW2V, TensorName::kDW2V                                                                                     \
  }
inline constexpr Binding kHiddenBindings[] = {{View::kK, TensorName::kKCmp},
                                              {View::kV, TensorName::kVCmp},
                                              {View::kPeK, TensorName::kPeK},
                                              {View::kPeV, TensorName::kPeV},
                                              {View::kW1K, TensorName::kW1K},
                                              {View::kW1V, TensorName::kW1V},
                                              {View::kB1K, TensorName::kB1K},
                                              {View::kB1V, TensorName::kB1V},
                                              {View::kW2K, TensorName::kW2K},
                                              {View::kW2V, TensorName::kW2V},
                                              {View::kDKComp, TensorName::kDKComp},
                                              {View::kDVComp, TensorName::kDVComp},
                                              {.view = View::kHK, .buffer = Buffer::kHK},
                                              {.view = View::kHV, .buffer = Buffer::kHV},
                                              {.view = View::kDzK, .buffer = Buffer::kDzK},
                                              {.view = View::kDzV, .buffer = Buffer::kDzV}};
inline constexpr Binding kTokenGradientBindings[] = {
    NSA_DZ_BINDINGS, NSA_FIRST_WEIGHTS, {View::kDK, TensorName::kDKCmp}, {View::kDV, TensorName::kDVCmp}};
inline constexpr Binding kWeightGradientBindings[] = {
    {View::kK, TensorName::kKCmp},
    {View::kV, TensorName::kVCmp},
    NSA_DZ_BINDINGS,
    {.view = View::kHK, .buffer = Buffer::kHK},
    {.view = View::kHV, .buffer = Buffer::kHV},
    {View::kDKComp, TensorName::kDKComp},
    {View::kDVComp, TensorName::kDVComp},
    NSA_GRADIENTS_OF_WEIGHTS,
    {.view = View::kWeightParts, .buffer = Buffer::kWeightParts, .order = Order::kCopyRowColumn}};
inline constexpr Binding kBiasGradientBindings[] = {
    NSA_DZ_BINDINGS,
    {View::kDKComp, TensorName::kDKComp},
    {View::kDVComp, TensorName::kDVComp},
    {.view = View::kBiasElements, .buffer = Buffer::kBiasParts, .order = Order::kCopyRowColumn}};
inline constexpr Binding kSumsBindings[] = {
    {.view = View::kWeightParts, .buffer = Buffer::kWeightParts, .order = Order::kCopyRowColumn},
    {.view = View::kBiasParts, .buffer = Buffer::kBiasParts, .order = Order::kCopyRowColumn},
    NSA_FIRST_WEIGHTS,
    {View::kPeKElements, TensorName::kPeK},
    {View::kPeVElements, TensorName::kPeV},
    NSA_GRADIENTS_OF_WEIGHTS,
    {View::kDBK, TensorName::kDBK},
    {View::kDBV, TensorName::kDBV},
    {View::kDBK, TensorName::kDB1K},
    {View::kDBV, TensorName::kDB1V},
    {View::kDPeK, TensorName::kDPeK},
    {View::kDPeV, TensorName::kDPeV},
    {View::kDB2K, TensorName::kDB2K},
    {View::kDB2V, TensorName::kDB2V}};
#undef NSA_DZ_BINDINGS
#undef NSA_FIRST_WEIGHTS
#undef NSA_GRADIENTS_OF_WEIGHTS

constexpr GraphNode weightNode(Role role, Operator op, std::span<const Binding> bindings) {
  return {.role = role,
          .op = op,
          .isNeeded = hasWeights,
          .change = dropActivation,
          .launch = GraphNode::Launch::kForOptional,
          .bindings = bindings,
          .prepare = countParts};
}
inline constexpr GraphNode kCompressBwdNodes[] = {
    kSequencesNode,
    {.role = Role::kDz, .op = Operator::kCompressDz, .isNeeded = hasHiddenValues, .bindings = kHiddenBindings},
    {.role = Role::kDx, .op = Operator::kCompressDx, .change = dropActivation, .bindings = kTokenGradientBindings},
    weightNode(Role::kDw, Operator::kCompressDw, kWeightGradientBindings),
    weightNode(Role::kDb, Operator::kCompressDb, kBiasGradientBindings),
    weightNode(Role::kSums, Operator::kCompressSums, kSumsBindings)};

constexpr GraphBuffer hiddenBuffer(Buffer buffer) {
  return {
      buffer,         Role::kDz, GraphBuffer::Rows::kCompressed, GraphBuffer::Heads::kKv, GraphBuffer::Columns::kHidden,
      TensorRole::kIo};
}
constexpr GraphBuffer partsBuffer(Buffer buffer, GraphBuffer::Rows rows) {
  return {buffer,
          Role::kSums,
          rows,
          GraphBuffer::Heads::kNone,
          GraphBuffer::Columns::kWeights,
          TensorRole::kStatistics,
          GraphBuffer::Copies::kParts};
}
inline constexpr GraphBuffer kCompressBwdBuffers[] = {kTableBuffer,
                                                      hiddenBuffer(Buffer::kHK),
                                                      hiddenBuffer(Buffer::kHV),
                                                      hiddenBuffer(Buffer::kDzK),
                                                      hiddenBuffer(Buffer::kDzV),
                                                      partsBuffer(Buffer::kWeightParts, GraphBuffer::Rows::kWeights),
                                                      partsBuffer(Buffer::kBiasParts, GraphBuffer::Rows::kBiases)};
inline constexpr Graph kCompressBwd = {kCompressBwdNodes, kCompressBwdBuffers, Operator::kCompressBwd};

} // namespace nsa
