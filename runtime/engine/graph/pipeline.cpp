#include "runtime/engine/graph/pipeline.h"

#include "runtime/engine/graph/comparison.h"

#include <algorithm>

namespace nsa {

namespace {

using T = TensorName;

constexpr int64_t kPiece = 16; // scores of a query that tiles read at once

std::array<int64_t, kMaxCoordinates> stridesOf(Order order, const WorkspaceLayout::Placed &at, int64_t entry,
                                               const Spec &spec) {
  switch (order) {
  case Order::kEntryRowHead:
    return {entry, at.row, at.columns};
  case Order::kEntryRowHeadColumn:
    return {entry, at.row, at.columns, 1};
  case Order::kEntryRowGroup:
    return {entry, at.row, spec.group() * at.columns};
  case Order::kColumnRowHead:
    return {1, at.row, at.columns};
  case Order::kCopyRowColumn:
    return {at.copy, at.row, 1};
  case Order::kRowHead:
    return {at.row, at.columns};
  case Order::kRowHeadColumn:
    return {at.row, at.columns, 1};
  case Order::kRowHeadPiece:
    return {at.row, at.columns, kPiece};
  case Order::kEntryRowGroupPart:
    return {entry, at.row, spec.group() * at.columns, at.columns / spec.selCount};
  case Order::kRowColumn:
  case Order::kSecondRowColumn:
    return {at.row, 1};
  }
  return {};
}

// Returns whether the workspace has the buffer: a kernel of the plan makes it.
bool hasBuffer(const Graph &graph, Buffer buffer, const Spec &spec, const Maxima &maxima) {
  const auto found = std::ranges::find(graph.buffers, buffer, &GraphBuffer::buffer);
  return found != graph.buffers.end() && found->isNeededBy(spec) &&
         std::ranges::any_of(
             graph.nodes, [&](const GraphNode &node) { return node.role == found->maker && node.isIn(spec, maxima); });
}

} // namespace

uint8_t routesOf(const Spec &spec, const Maxima &maxima) {
  // A shortcut adds up keys in another order, and depends on the room of the plan.
  if (!definitionOf(spec.op).hasBranches() || definitionOf(spec.op).isGradient() || spec.batchInvariant)
    return 0;
  uint8_t routes = 0;
  // b + 1 <= n for every query (docs/specification.md 5.6).
  if (spec.hasBranch(kBranchSel) && maxima.seqlenK <= int64_t{spec.selCount} * spec.selBlock)
    routes |= kSelIsDense;
  if (spec.hasBranch(kBranchWin) && maxima.seqlenK <= spec.window)
    routes |= kWinIsDense;
  return routes;
}

std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima) {
  return stepsOf(spec, maxima, routesOf(spec, maxima));
}

std::vector<Step> stepsOf(const Spec &spec, const Maxima &maxima, uint8_t routes) {
  std::vector<Step> steps;
  const Graph &graph = graphOf(spec, maxima);
  for (const GraphNode &node : graph.nodes) {
    if (!node.isIn(spec, maxima))
      continue;
    Step step{node.role, spec, maxima, &node, static_cast<uint8_t>(node.shortcut & routes)};
    if (!definitionOf(spec.op).hasCache)
      step.spec.cacheDtype.reset();
    step.spec.makeIndex = step.spec.decodeStep = false; // they say which steps there are, and change none
    step.spec.op = (step.route ? node.shortcutOp : node.op).value_or(spec.op);
    if (node.change)
      node.change(step.spec, spec);
    if (node.bindsOperands)
      for (const Operand &operand : operandsOf(node.op.value_or(spec.op)))
        step.arguments.push_back({operand.view, operand.name});
    for (Binding binding : node.bindings) {
      if (hasBuffer(graph, binding.unless, spec, maxima))
        continue;
      if (!hasBuffer(graph, binding.buffer, spec, maxima))
        binding.buffer = Buffer::kNone;
      step.arguments.push_back(binding);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

Status checkTypes(const Step &step, const LoadedKernel &kernel) {
  for (const Binding &binding : step.arguments)
    if (const std::optional<TensorRole> role = roleOf(binding))
      NSA_RETURN_IF_ERROR(kernel.checkType(binding.view, step.spec.types().of(*role)));
  return Status::ok();
}

KernelCall singleCall(Operator op, const Call &call, const ViewSlots &table) {
  KernelCall result;
  result.scalars = call.scalars;
  result.grid = call.sizes;
  result[View::kSequences] = table;
  for (const Operand &operand : operandsOf(op))
    result[operand.view] = call[operand.name];
  return result;
}

Status PipelineRun::run() const {
  if (trace)
    NSA_RETURN_IF_ERROR(trace->clock.mark(stream));
  KernelCall base;
  base.scalars = call.scalars;
  base.grid = call.sizes;
  setScalar(base.scalars, Scalar::kLists, readsLists());
  if (layout.has(Buffer::kTable))
    base[View::kSequences] = viewOf(Buffer::kTable, Order::kRowColumn, 0);
  const auto chunked = std::ranges::find_if(launches, [](const LaunchStep &step) { return step.node->isChunked; });
  const auto behind =
      std::find_if(chunked, launches.end(), [](const LaunchStep &step) { return !step.node->isChunked; });
  NSA_RETURN_IF_ERROR(launch({launches.begin(), chunked}, base, 0));
  for (int64_t first = 0; chunked != behind && first < call.timeQ; first += layout.chunk) {
    const int64_t past = std::min(first + layout.chunk, call.timeQ);
    KernelCall chunk = base;
    setScalar(chunk.scalars, Scalar::kQueryBegin, first);
    setScalar(chunk.scalars, Scalar::kQueryEnd, past);
    setScalar(chunk.scalars, Scalar::kQueryStep, std::max<int64_t>(layout.chunkRows - layout.chunk, 1));
    const int64_t rows = std::min(layout.chunkRows, call.timeQ - first);
    chunk.grid.maxSeqlenQ = std::min(base.grid.maxSeqlenQ, rows);
    chunk.grid.maxTokensQ = (rules.spec.layout == Layout::kPacked ? 1 : base.grid.batch) * rows;
    NSA_RETURN_IF_ERROR(launch({chunked, behind}, chunk, first));
  }
  return launch({behind, launches.end()}, base, 0);
}

Status PipelineRun::launch(std::span<const LaunchStep> steps, const KernelCall &base, int64_t first) const {
  for (const LaunchStep &step : steps)
    NSA_RETURN_IF_ERROR(launch(step, base, first));
  return Status::ok();
}

Status PipelineRun::launch(const LaunchStep &step, const KernelCall &base, int64_t first) const {
  const GraphNode &node = *step.node;
  if (!isWanted(node))
    return Status::ok();
  KernelCall kernelCall = base;
  bind(step, first, kernelCall);
  if (node.prepare)
    node.prepare(kernelCall, rules.spec, layout, call);
  if (!node.sharesKeys)
    return launch(step, kernelCall, node.role);
  constexpr int32_t kSelWin = kBranchSel | kBranchWin;
  const int32_t branches = node.output == kSelWin ? node.output & rules.spec.branches : node.output;
  if (trace && branches == kSelWin) { // each by itself, so that each has a time
    bindShares(kBranchSel, kernelCall);
    NSA_RETURN_IF_ERROR(launch(step, kernelCall, Role::kSel));
    bindShares(kBranchWin, kernelCall);
    return launch(step, kernelCall, Role::kWin);
  }
  bindShares(branches, kernelCall);
  return launch(step, kernelCall, node.role);
}

Status PipelineRun::launch(const LaunchStep &step, const KernelCall &kernelCall, Role part) const {
  const Role role = step.node->role;
  if (tap)
    tap->launching(role, kernelCall);
  NSA_RETURN_IF_ERROR(step.kernel->launch(kernelCall, statusWord, workspace, stream));
  if (comparison)
    NSA_RETURN_IF_ERROR(comparison->add(step, kernelCall, statusWord, stream));
  if (!trace)
    return Status::ok();
  trace->launched.push_back(part);
  return trace->clock.mark(stream);
}

bool PipelineRun::readsLists() const {
  // The kernels that share keys serve all maxima of a bucket, so their steps have no route.
  const bool shares = sharesKeys(rules.spec, rules.maxima);
  return ((shares ? routesOf(rules.spec, rules.maxima) : routes) & kSelIsDense) == 0;
}

bool PipelineRun::isWanted(const GraphNode &node) const {
  const bool callerList = call[T::kBlockList].data != nullptr;
  switch (node.launch) {
  case GraphNode::Launch::kAlways:
    return true;
  case GraphNode::Launch::kForScores:
    return rules.spec.hasBranch(node.output) || callerList || readsLists();
  case GraphNode::Launch::kForLists:
    return callerList || readsLists();
  case GraphNode::Launch::kForCallerList:
    return callerList;
  case GraphNode::Launch::kWithoutLse:
    return call[T::kLse].data == nullptr;
  case GraphNode::Launch::kForWeights:
    return std::ranges::any_of(operandsOf(rules.spec.op), [&](const Operand &operand) {
      return operand.isWritten() && tensorRule(operand.name).lead == Lead::kNone && call[operand.name].data;
    });
  case GraphNode::Launch::kForZeros:
    return call[T::kDQCmp].data && call[T::kDQCmp].data != call[T::kDQ].data;
  case GraphNode::Launch::kWithoutBlocks:
    return call[T::kKComp].data == nullptr || call[T::kVComp].data == nullptr;
  case GraphNode::Launch::kWithoutOutput:
    return call[node.output == kBranchCmp ? T::kOCmp : node.output == kBranchSel ? T::kOSel : T::kOWin].data == nullptr;
  case GraphNode::Launch::kWithIndex:
    return call[T::kBlockIndex].data != nullptr;
  case GraphNode::Launch::kWithoutIndex:
    return call[T::kBlockIndex].data == nullptr;
  }
  return true;
}

void PipelineRun::bind(const LaunchStep &step, int64_t first, KernelCall &kernelCall) const {
  const bool wantsReads = call[T::kReads].data != nullptr;
  for (const Binding &binding : step.arguments) {
    if ((binding.branches && !rules.spec.hasBranch(binding.branches)) || (binding.ifReads && !wantsReads))
      continue;
    const ViewSlots *bound = binding.tensor == Binding::kNoTensor ? nullptr : &call[binding.tensor];
    if (bound && binding.sameAbsent != Binding::kNoTensor && bound->data == call[binding.sameAbsent].data)
      continue;
    if (binding.buffer != Buffer::kNone && !(bound && bound->data))
      kernelCall[binding.view] = viewOf(binding.buffer, binding.order, first);
    else if (bound && bound->data)
      kernelCall[binding.view] = *bound;
  }
}

// Programs of several branches stand one after another, as their results do.
void PipelineRun::bindShares(int32_t branches, KernelCall &kernelCall) const {
  const ShareRanges &shares = layout.shares;
  int64_t splits = 0, first = 0;
  for (size_t branch = shares.counts.size(); branch-- > 0;)
    if (branches >> branch & 1) {
      splits += shares.counts[branch];
      first = shares.first[branch];
    }
  kernelCall.grid.splits = splits;
  setScalar(kernelCall.scalars, Scalar::kSplits, splits);
  setScalar(kernelCall.scalars, Scalar::kSelSplits, branches & kBranchSel ? shares.counts[1] : 0);
  setScalar(kernelCall.scalars, Scalar::kFirstSplit, first);
}

// Rows of a chunk are addressed by the call's own times.
ViewSlots PipelineRun::viewOf(Buffer buffer, Order order, int64_t first) const {
  using Rows = GraphBuffer::Rows;
  const WorkspaceLayout::Placed &at = layout[buffer];
  const Spec &spec = rules.spec;
  const bool packed = spec.layout == Layout::kPacked;
  const DType dtype = spec.types().of(at.role);
  int64_t entry = at.copy, begin = 0, rows = 0;
  if (at.rows == Rows::kChunk) {
    entry = packed ? 0 : layout.chunkRows * at.row;
    begin = -first * at.row;
  } else if (at.rows == Rows::kCompressed) {
    // Sequences of a packed batch follow each other. In the dense layout their distance follows from the call's
    // lengths.
    rows = packed ? layout.compRows : call.sizes.maxBlocksC;
    entry = packed ? 0 : rows * at.row;
  } else if (at.rows == Rows::kTimes) {
    entry = packed ? 0 : rules.maxima.seqlenQ * at.row;
  } else if (at.rows == Rows::kStaged) {
    entry = 0;
  } else if (order == Order::kSecondRowColumn) {
    begin = call.sizes.batch * at.row;
  }
  const auto address =
      reinterpret_cast<uintptr_t>(workspace + at.offset) + static_cast<uintptr_t>(begin * dtypeBytes(dtype));
  return ViewSlots::make(reinterpret_cast<const void *>(address), dtype, stridesOf(order, at, entry, spec), rows);
}

} // namespace nsa
