#include "runtime/engine/graph/graph.h"

#include "runtime/base/key_splits.h"
#include "runtime/engine/graph/compress_gradient_graph.h"
#include "runtime/engine/graph/decode_graphs.h"
#include "runtime/engine/graph/gradient_graphs.h"
#include "runtime/engine/graph/nsa_gradient_graph.h"
#include "runtime/engine/graph/workspace.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace nsa {

namespace {

using T = TensorName;
using V = View;
using B = Buffer;
using Rows = GraphBuffer::Rows;
using Heads = GraphBuffer::Heads;
using Columns = GraphBuffer::Columns;
using Copies = GraphBuffer::Copies;
using Launch = GraphNode::Launch;
using enum Order;
using enum TensorRole;

constexpr T kNoTensor = Binding::kNoTensor;

// How the spec of a step differs from the operator's.

// For callers without the log-sum-exp: the compressed branch over its keys as values.
void takeKeysAsValues(Spec &step, const Spec &whole) { step.vDim = whole.qkDim; }

// An operator that is one kernel.
constexpr GraphNode kSingleNodes[] = {kSequencesNode, {.role = Role::kMain, .bindsOperands = true}};
constexpr GraphBuffer kSingleBuffers[] = {kTableBuffer};
constexpr Graph kSingle = {kSingleNodes, kSingleBuffers};

constexpr Binding kLseOfSelect[] = {{V::kQ, T::kQCmp},
                                    {V::kK, T::kKComp},
                                    {V::kV, T::kKComp},
                                    {V::kOut, kNoTensor, B::kOutCmp},
                                    {V::kLse, kNoTensor, B::kLse}};
constexpr Binding kSelectAlone[] = {{V::kLse, T::kLse, B::kLse}};
constexpr auto kSelectNodes =
    joined(std::array{kSequencesNode,
                      GraphNode{.role = Role::kCmp,
                                .op = Operator::kCmp,
                                .change = takeKeysAsValues,
                                .launch = Launch::kWithoutLse,
                                .bindings = kLseOfSelect},
                      GraphNode{.role = Role::kMain, .bindsOperands = true, .bindings = kSelectAlone}},
           kAskedIndexNodes);
constexpr GraphBuffer kSelectBuffers[] = {
    kTableBuffer,
    {B::kLse, Role::kCmp, Rows::kChunk, Heads::kQuery, Columns::kOne, kStatistics},
    {B::kOutCmp, Role::kCmp, Rows::kChunk, Heads::kQuery, Columns::kQkDim, kIo},
    kListLengthsBuffer,
    kBlockCountsBuffer,
};
constexpr Graph kSelect = {kSelectNodes, kSelectBuffers, Operator::kSelect};

constexpr Keys kCmpOfNsa = {{V::kK, T::kKComp, B::kKComp}, {V::kV, T::kVComp, B::kVComp}};
constexpr auto kNsaCmp = cmpBindings(kCmpOfNsa);
constexpr auto kNsaSelect = selectBindings(kCmpOfNsa);
constexpr auto kNsaSel = selBindings({{V::kK, T::kKSel}, {V::kV, T::kVSel}});
constexpr auto kNsaWin = winBindings({{V::kK, T::kKWin}, {V::kV, T::kVWin}});
constexpr Binding kNsaCompress[] = {{V::kKComp, T::kKComp, B::kKComp}, {V::kVComp, T::kVComp, B::kVComp}};

constexpr auto kNsaNodes = joined(std::array{kSequencesNode,
                                             GraphNode{.role = Role::kCompress,
                                                       .op = Operator::kCompress,
                                                       .branches = kScoredBranches,
                                                       .bindsOperands = true,
                                                       .bindings = kNsaCompress},
                                             cmpNode(nullptr, kNsaCmp), selectNode(nullptr, kNsaSelect),
                                             selNode(nullptr, kNsaSel), winNode(nullptr, kNsaWin), kCombineNode},
                                  kAskedIndexNodes);
constexpr GraphBuffer kNsaBuffers[] = {
    kTableBuffer,
    {B::kKComp, Role::kCompress, Rows::kCompressed, Heads::kKv, Columns::kQkDim, kIo},
    {B::kVComp, Role::kCompress, Rows::kCompressed, Heads::kKv, Columns::kVDim, kIo},
    kLseBuffer,
    kListBuffer,
    outBuffer(B::kOutCmp, Role::kCmp),
    readsBuffer(B::kReadsCmp, Role::kCmp),
    outBuffer(B::kOutSel, Role::kSel),
    readsBuffer(B::kReadsSel, Role::kSel),
    outBuffer(B::kOutWin, Role::kWin),
    readsBuffer(B::kReadsWin, Role::kWin),
    kListLengthsBuffer,
    kBlockCountsBuffer,
};
constexpr Graph kNsa = {kNsaNodes, kNsaBuffers, Operator::kNsa};

// An operator has the first graph that fits it.
constexpr const Graph *kGraphs[] = {&kSelect,   &kNsa,       &kDecode, &kDecodeOfFew, &kDecodeStep,
                                    &kDenseBwd, &kWindowBwd, &kCmpBwd, &kInvert,      &kCompressBwd,
                                    &kSelBwd,   &kNsaBwd,    &kSingle};
// The graph of each operator. In decode with few queries, programs share keys: kDecodeOfFew.
constexpr auto kGraphOf = [] {
  std::array<const Graph *, kOperators> result{};
  for (size_t op = 0; op < kOperators; ++op)
    result[op] = *std::ranges::find_if(
        kGraphs, [&](const Graph *graph) { return !graph->op || *graph->op == static_cast<Operator>(op); });
  return result;
}();

// Each binding names a buffer of its graph, each buffer has a maker, and nodes that run in chunks follow each other.
constexpr bool isConsistent(const Graph &graph) {
  const auto isWhole = [](const GraphNode &node) { return !node.isChunked; };
  const auto chunked = std::ranges::find_if_not(graph.nodes, isWhole);
  if (!std::all_of(std::find_if(chunked, graph.nodes.end(), isWhole), graph.nodes.end(), isWhole))
    return false;
  for (const GraphNode &node : graph.nodes) {
    for (const Binding &binding : node.bindings)
      if (binding.buffer != B::kNone && std::ranges::count(graph.buffers, binding.buffer, &GraphBuffer::buffer) != 1)
        return false;
  }
  return std::ranges::all_of(graph.buffers, [&](const GraphBuffer &buffer) {
    return std::ranges::count(graph.nodes, buffer.maker, &GraphNode::role) == 1;
  });
}
static_assert(std::ranges::all_of(kGraphs, [](const Graph *graph) { return isConsistent(*graph); }));

} // namespace

std::string_view roleName(Role role, Operator op) {
  constexpr std::string_view kNames[] = {
      "sequences",    "append",       "compress",     "cmp",         "scores",       "rank",
      "select",       "ascend",       "sel",          "win",         "combine",      "deltas",
      "dq",           "dkv",          "gates",        "dq_cmp",      "dq_sel",       "dq_win",
      "dkv_cmp",      "sum_cmp",      "dkv_sel",      "dkv_win",     "sum",          "index_lengths",
      "index_counts", "index_starts", "index_fill",   "index_check", "dz",           "dx",
      "dw",           "db",           "sums",         "index_slots", "index_ranges", "dq_slots",
      "sum_slots",    "zero_queries", "zero_weights", "step"};
  static_assert(std::size(kNames) == static_cast<size_t>(Role::kMain) && kRoles == std::size(kNames) + 1);
  return role == Role::kMain ? operatorName(op) : kNames[static_cast<size_t>(role)];
}

std::optional<TensorRole> roleOf(const Binding &binding) {
  if (binding.tensor != kNoTensor)
    return tensorRule(binding.tensor).role;
  for (const Graph *graph : kGraphs)
    for (const GraphBuffer &buffer : graph->buffers)
      if (buffer.buffer == binding.buffer)
        return buffer.role;
  return std::nullopt;
}

std::vector<Operand> comparedOperands(const GraphNode &node, Operator op) {
  using Operand::Role::kOptionalOut, Operand::Role::kOut;
  std::vector<Operand> compared;
  std::ranges::copy_if(operandsOf(op), std::back_inserter(compared),
                       [](const Operand &operand) { return operand.role == kOut; });
  for (const Binding &binding : node.bindings)
    if (std::ranges::find(kComparedStatistics, binding.view) != std::end(kComparedStatistics))
      compared.push_back({T::kDelta, T::kDelta, kOptionalOut, binding.view});
  return compared;
}

const Graph &graphOf(const Spec &spec, const Maxima &maxima) {
  return spec.decodeStep            ? kDecodeStep
         : sharesKeys(spec, maxima) ? kDecodeOfFew
                                    : *kGraphOf[static_cast<size_t>(spec.op)];
}

} // namespace nsa
