// What the checks of operators share: the tensors of a call, and the comparison of an output with the rows that the
// fp64 reference computes.
// Thread-safety: one thread at a time may use a checker.
#pragma once

#include "tools/support/operator_check.h"

#include <array>
#include <span>
#include <utility>

namespace nsa::tools {

// The tensor that serves for a name, or a view of nothing.
inline reference::TensorView inputView(const OperatorInputs &inputs, TensorName name, TensorName otherwise) {
  const HostTensor *tensor = inputs.find(name, otherwise);
  return tensor ? viewOf(inputs.spec, name, *tensor) : reference::TensorView();
}

class OutputChecker {
public:
  OutputChecker(const OperatorInputs &inputs, const NamedTensors &outputs, const std::vector<int64_t> &rows)
      : inputs(inputs), spec(inputs.spec), outputs(outputs), rows(rows), sequences(sequencesOf(inputs)),
        compared(sequences), tolerance(reference::toleranceOf(spec.dtype)) {
    if (!rows.empty())
      compared = reference::renumberRows(reference::singleRows(sequences, rows));
  }

protected:
  using T = TensorName;
  using Sequence = reference::Sequence;
  using TensorView = reference::TensorView;

  const HostTensor *output(T name) const {
    auto found = outputs.find(name);
    return found == outputs.end() ? nullptr : &found->second;
  }
  TensorView out(T name) const {
    const HostTensor *tensor = output(name);
    return tensor ? viewOf(spec, name, *tensor) : TensorView();
  }
  TensorView in(T name) const { return inputView(inputs, name, name); }
  TensorView in(View view) const {
    const Operand &operand = *definitionOf(spec.op).operandOf(view);
    return inputView(inputs, operand.name, operand.otherwise);
  }
  void addRows(T name, std::span<const Sequence> rows, int64_t heads, int64_t columns, std::span<const double> expected,
               T lseName = T::kQ, std::span<const double> lse = {}) {
    const bool hasLse = !lse.empty() && output(lseName);
    if (!output(name) && !hasLse)
      return;
    reference::ErrorReport report;
    if (output(name))
      report = reference::compareRows(rows, heads, columns, expected, out(name));
    if (hasLse)
      reference::compareLse(rows, heads, lse, out(lseName), report);
    add(output(name) ? name : lseName, tolerance, report);
  }

  void add(T name, const reference::Tolerance &limits, const reference::ErrorReport &report) {
    result.outputs.push_back({.name = std::string(tensorName(name)),
                              .within = report.within(limits),
                              .text = report.toString(limits),
                              .error = report,
                              .limits = limits,
                              .isRightElsewhere = report.judgedWithin(limits)});
  }

  reference::Attention attentionOf(const std::vector<Sequence> &own) const {
    reference::Attention attention{
        .spec = spec, .q = in(View::kQ), .k = in(View::kK), .v = in(View::kV), .sequences = own};
    if (definitionOf(spec.op).keys == MetKeys::kListed)
      attention.blockLists =
          reference::readBlockLists(own, listView(spec, inputs[T::kBlockList]), spec.kvHeads, spec.selCount);
    return attention;
  }

  // What combine and combine_bwd read.
  struct CombinedBranches {
    reference::Combination combination;
    std::array<std::vector<double>, reference::kBranchCount> branches{};
  };
  CombinedBranches combinedBranches() const {
    constexpr T kNames[] = {T::kOCmp, T::kOSel, T::kOWin};
    CombinedBranches combined{.combination = {.spec = spec, .gates = in(T::kGates), .sequences = compared}};
    for (size_t i = 0; i < reference::kBranchCount; ++i) {
      if (!spec.hasBranch(1 << i))
        continue;
      combined.branches[i] = reference::readRows(compared, in(kNames[i]), spec.queryHeads, spec.vDim);
      combined.combination.branches[i] = combined.branches[i];
    }
    return combined;
  }

  const OperatorInputs &inputs;
  const Spec &spec;
  const NamedTensors &outputs;
  const std::vector<int64_t> &rows; // to compare; none: all
  std::vector<Sequence> sequences;  // whole
  std::vector<Sequence> compared;   // these, or single queries of them
  reference::Tolerance tolerance;
  OperatorCheck result;
};

} // namespace nsa::tools
