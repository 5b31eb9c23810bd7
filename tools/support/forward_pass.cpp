#include "tools/support/forward_pass.h"

#include "tools/reference/elements.h"
#include "tools/reference/nsa.h"
#include "tools/support/operator_check.h"

#include <algorithm>
#include <cassert>

namespace nsa::tools {
namespace {

// What the forward pass saves for its gradient: outputs, rounded as kernels round them, log-sum-exps, lists, and
// compressed rows. Drawn ones would make weights that add up to anything.
class ReferenceSaved {
public:
  explicit ReferenceSaved(OperatorInputs &inputs) : inputs(inputs), spec(inputs.spec), sequences(sequencesOf(inputs)) {}

  void addAttention() {
    const auto view = [&](View argument) {
      const Operand &operand = *definitionOf(spec.op).operandOf(argument);
      const HostTensor *tensor = inputs.find(operand.name, operand.otherwise);
      return viewOf(spec, operand.name, *tensor);
    };
    reference::Attention attention{
        .spec = spec, .q = view(View::kQ), .k = view(View::kK), .v = view(View::kV), .sequences = sequences};
    if (definitionOf(spec.op).keys == MetKeys::kListed)
      attention.blockLists = reference::readBlockLists(sequences, listView(spec, inputs[TensorName::kBlockList]),
                                                       spec.kvHeads, spec.selCount);
    add(TensorName::kOut, TensorName::kLse, reference::attend(attention));
  }

  void addNsa() {
    constexpr TensorName kOuts[] = {TensorName::kOCmp, TensorName::kOSel, TensorName::kOWin};
    constexpr TensorName kLses[] = {TensorName::kLseCmp, TensorName::kLseSel, TensorName::kLseWin};
    reference::Nsa nsa = referenceNsa(inputs);
    const bool hasLists = inputs.tensors.contains(TensorName::kBlockList);
    if (hasLists)
      nsa.blockLists = listView(spec, inputs[TensorName::kBlockList]);
    const reference::NsaResult result = reference::forward(nsa);
    for (size_t i = 0; i < reference::kBranchCount; ++i)
      if (spec.hasBranch(1 << i))
        add(kOuts[i], kLses[i], result.branches[i]);
    const auto addRows = [&](TensorName name, const reference::OwnedTensor &rows) {
      HostTensor tensor = HostTensor::make(spec.dtype, shapeOf(spec, name, inputs.extents));
      std::copy_n(rows.bytes.begin(), std::min(rows.bytes.size(), tensor.bytes.size()), tensor.bytes.begin());
      inputs.tensors[name] = std::move(tensor);
    };
    if (spec.hasBranch(kBranchCmp)) {
      addRows(TensorName::kKComp, result.compressed.k);
      addRows(TensorName::kVComp, result.compressed.v);
    }
    if (!spec.hasBranch(kBranchSel) || hasLists)
      return;
    HostTensor lists = HostTensor::make(DType::kI32, shapeOf(spec, TensorName::kBlockList, inputs.extents));
    const int64_t elements = int64_t{spec.kvHeads} * spec.selCount;
    for (const reference::Sequence &sequence : sequences)
      std::copy_n(result.blockLists.blocks.begin() + sequence.firstRow * elements, sequence.queries * elements,
                  lists.integers().begin() + timeOf(sequence) * elements);
    inputs.tensors[TensorName::kBlockList] = std::move(lists);
  }

private:
  int64_t timeOf(const reference::Sequence &sequence) const {
    return sequence.batch * inputs.extents.timeQ + sequence.queryBegin;
  }

  void add(TensorName out, TensorName lse, const reference::AttentionResult &result) {
    store(out, int64_t{spec.queryHeads} * spec.vDim, result.out);
    store(lse, spec.queryHeads, result.lse);
  }

  void store(TensorName name, int64_t elements, const std::vector<double> &values) {
    HostTensor tensor = HostTensor::make(dtypeOf(spec, name), shapeOf(spec, name, inputs.extents));
    for (const reference::Sequence &sequence : sequences)
      for (int64_t i = 0; i < sequence.queries * elements; ++i)
        reference::storeElement(tensor.dtype, tensor.bytes.data(), timeOf(sequence) * elements + i,
                                values[static_cast<size_t>(sequence.firstRow * elements + i)]);
    inputs.tensors[name] = std::move(tensor);
  }

  OperatorInputs &inputs;
  const Spec &spec;
  const std::vector<reference::Sequence> sequences;
};

} // namespace

std::set<TensorName> savedFor(Operator op) {
  const OperatorDef &gradient = definitionOf(op);
  std::set<TensorName> saved;
  for (const Operand &operand : definitionOf(gradient.gradientOf).operands)
    if (const Operand *read = gradient.operandOf(operand.name); operand.isWritten() && read && !read->isWritten())
      saved.insert(operand.name);
  return saved;
}

void addReferenceSaved(OperatorInputs &inputs) {
  if (definitionOf(inputs.spec.op).isAttentionGradient())
    ReferenceSaved(inputs).addAttention();
  if (definitionOf(inputs.spec.op).isWholeGradient())
    ReferenceSaved(inputs).addNsa();
}

OperatorInputs forwardInputs(const OperatorInputs &gradient) {
  const OperatorDef &forward = definitionOf(definitionOf(gradient.spec.op).gradientOf);
  assert(gradient.spec.op != forward.op);
  OperatorInputs inputs{.spec = gradient.spec, .maxima = gradient.maxima, .extents = gradient.extents, .tensors = {}};
  inputs.spec.op = forward.op;
  for (const auto &[tensor, values] : gradient.tensors)
    if (std::ranges::any_of(forward.operands,
                            [name = tensor](const Operand &operand) {
                              return operand.isRead() && (operand.name == name || operand.otherwise == name);
                            }) ||
        tensor == TensorName::kCuSeqlensQ || tensor == TensorName::kCuSeqlensK)
      inputs.tensors[tensor] = values;
  // A gradient without the branch cmp takes lists and compresses nothing. The forward pass makes the lists, and only
  // the lists depend on the keys and values that it compresses for them.
  if (inputs.spec.compresses() && !gradient.spec.compresses()) {
    inputs.spec.cmpKind = CmpKind::kMean;
    inputs.tensors[TensorName::kKCmp] = *gradient.find(TensorName::kKSel, TensorName::kK);
    inputs.tensors[TensorName::kVCmp] = *gradient.find(TensorName::kVSel, TensorName::kV);
  }
  return inputs;
}

Status addSaved(OperatorInputs &inputs, nsa_engine *engine, Accelerator &accelerator) {
  const OperatorInputs own = forwardInputs(inputs);
  const std::set<TensorName> saved = savedFor(inputs.spec.op);
  NSA_ASSIGN_OR_RETURN(const PlanHandle plan, createPlan(engine, own.spec, own.maxima, accelerator.stream()));
  NSA_ASSIGN_OR_RETURN(RunResult result, runOnce(accelerator, plan.get(), own, saved));
  for (auto &[name, tensor] : result.outputs)
    if (saved.contains(name) && takes(inputs.spec, name))
      inputs.tensors[name] = std::move(tensor);
  return Status::ok();
}

} // namespace nsa::tools
