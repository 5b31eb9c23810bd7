#include "tools/support/operator_work.h"

#include "runtime/base/signature.h"
#include "runtime/engine/graph/pipeline.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <functional>

namespace nsa::tools {
namespace {

using reference::Sequence;

// The sum of a count over the positions of all queries.
int64_t sumOverQueries(const OperatorInputs &inputs, const std::function<int64_t(int64_t)> &count) {
  int64_t sum = 0;
  for (const Sequence &sequence : sequencesOf(inputs))
    for (int64_t query = 0; query < sequence.queries; ++query)
      sum += count(sequence.position(query));
  return sum;
}

bool leavesBlocksOut(const Spec &spec, int64_t position) { return position / spec.selBlock + 1 > spec.selCount; }

// Tokens up to `position` in the blocks of a list.
int64_t listedTokens(std::span<const int32_t> list, int64_t position, int64_t block) {
  int64_t tokens = 0;
  for (const int64_t number : list)
    if (number >= 0)
      tokens += std::clamp<int64_t>(position + 1 - number * block, 0, block);
  return tokens;
}

int64_t listedPairs(const OperatorInputs &inputs) {
  const Spec &spec = inputs.spec;
  const std::vector<Sequence> sequences = sequencesOf(inputs);
  const reference::BlockLists lists =
      reference::readBlockLists(sequences, listView(spec, inputs[TensorName::kBlockList]), spec.kvHeads, spec.selCount);
  int64_t tokens = 0;
  for (const Sequence &sequence : sequences)
    for (int64_t query = 0; query < sequence.queries; ++query)
      for (int32_t group = 0; group < spec.kvHeads; ++group)
        tokens += listedTokens(lists.at(sequence.firstRow + query, group), sequence.position(query), spec.selBlock);
  return tokens * spec.group();
}

// Pairs of one operator, or of a branch of nsa by the name of its operator.
int64_t pairsOf(Operator op, const OperatorInputs &inputs) {
  if (definitionOf(op).keys == MetKeys::kListed && inputs.tensors.contains(TensorName::kBlockList))
    return listedPairs(inputs);
  Spec spec = inputs.spec;
  spec.op = op;
  return spec.queryHeads * sumOverQueries(inputs, [&](int64_t position) { return spec.keysMet(position + 1); });
}

bool choosesBlocks(const OperatorDef &def) {
  const Operand *lists = def.operandOf(TensorName::kBlockList);
  return lists && !lists->isRead();
}

double flopsOf(Operator op, const OperatorInputs &inputs) {
  const OperatorDef &def = definitionOf(op);
  Spec spec = inputs.spec;
  spec.op = op;
  if (def.hasBranches())
    return 0;
  if (def.fields & kPhi) {
    double blocks = 0;
    for (const Sequence &sequence : sequencesOf(inputs))
      blocks += static_cast<double>(spec.compressedBlocks(sequence.keys));
    // A gradient has a product for the tokens and one for the weights, and makes the hidden values again.
    const double hidden = spec.cmpKind == CmpKind::kMlp ? spec.cmpBlock / (spec.cmpBlock + 1.0) : 0;
    const double products = spec.phiProducts() * (!def.isGradient() ? 1 : 2 + hidden);
    return 2.0 * blocks * spec.kvHeads * products;
  }
  // Scores and gradients of weights, and the gradients of queries, keys and values.
  if (def.isAttentionGradient())
    return 2.0 * static_cast<double>(pairsOf(op, inputs)) * (3.0 * spec.qkDim + 2.0 * spec.vDim);
  if (def.isAttention())
    return 2.0 * static_cast<double>(pairsOf(op, inputs)) * (spec.qkDim + spec.vDim);
  if (def.keys == MetKeys::kNone)
    return 0;
  // A query that attends all of its blocks needs no score.
  const int64_t scores = sumOverQueries(
      inputs, [&](int64_t position) { return leavesBlocksOut(spec, position) ? spec.keysMet(position + 1) : 0; });
  return 2.0 * static_cast<double>(scores) * spec.queryHeads * spec.qkDim;
}

// Optional results are not counted, but for what another part of nsa needs.
double bytesOf(Operator op, const OperatorInputs &inputs) {
  Spec spec = inputs.spec;
  spec.op = op;
  double bytes = 0;
  for (const Operand &operand : operandsOf(op)) {
    if (operand.role == Operand::Role::kOptionalOut || !takes(spec, operand.name))
      continue;
    // Where every query attends all of its blocks, lists follow from their numbers.
    if (choosesBlocks(definitionOf(op)) && !operand.isWritten() && selectingQueries(inputs) == 0)
      continue;
    const Lead lead = tensorRule(operand.name).lead;
    if ((lead == Lead::kPositions || lead == Lead::kSequences) && !inputs.tensors.contains(operand.name))
      continue;
    const int64_t elements = elementsOf(shapeOf(spec, operand.name, inputs.extents));
    bytes += static_cast<double>(elements * dtypeBytes(dtypeOf(spec, operand.name)));
  }
  return bytes;
}

struct Part {
  Operator op;
  Role role;
};

// The operators that nsa is the sum of. A branch that is off adds nothing, also where another one needs its kernel.
std::vector<Part> partsOf(const Spec &spec) {
  const OperatorDef &def = definitionOf(spec.op);
  if (!def.isForward())
    return {{spec.op, Role::kMain}};
  std::vector<Part> parts;
  for (const Step &step : stepsOf(spec, {}, /*routes=*/0))
    if (definitionOf(step.spec.op).isPublic() && (!step.node->output || spec.hasBranch(step.node->output)))
      parts.push_back({step.spec.op, step.role});
  return parts;
}

} // namespace

double usefulFlops(const OperatorInputs &inputs) {
  double flops = 0;
  for (const Part &part : partsOf(inputs.spec))
    flops += flopsOf(part.op, inputs);
  return flops;
}

std::vector<PartWork> workByPart(const OperatorInputs &inputs) {
  std::vector<PartWork> parts;
  for (const auto &[op, role] : partsOf(inputs.spec))
    parts.push_back({op, roleName(role, op), flopsOf(op, inputs), bytesOf(op, inputs)});
  return parts;
}

int64_t selectingQueries(const OperatorInputs &inputs) {
  return sumOverQueries(inputs, [&](int64_t position) { return leavesBlocksOut(inputs.spec, position) ? 1 : 0; });
}

int64_t queryCount(const OperatorInputs &inputs) {
  return sumOverQueries(inputs, [](int64_t) { return 1; });
}

} // namespace nsa::tools
