// Compares what an operator computed with the fp64 reference, output by output, as the contract asks
// (docs/specification.md 11): attention outputs on the lists that were computed, lists by the margin of their scores,
// counts exactly. Thread-safety: pure functions, which start threads of their own.
#pragma once

#include "tests/reference/error_metrics.h"
#include "tests/reference/list_check.h"
#include "tests/reference/nsa.h"
#include "tools/support/operator_job.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

// One output's verdict: rows by error, lists by the reference's order, counts by equality.
struct OutputCheck {
  std::string name; // "out", "o_cmp", "block_list", ...
  bool within = false;
  std::string text; // figures and limits, or the first fault
  std::optional<reference::ErrorReport> error;
  std::optional<reference::ListReport> lists;
};

struct OperatorCheck {
  std::vector<OutputCheck> outputs;
  bool within() const;
  // Whether the only faults are rows that nothing can be said of, as the inputs are not finite there.
  bool isUnjudged(DType dtype) const;
  std::string toString() const; // a line each
};

reference::TensorView viewOf(const Spec &spec, TensorName name, const HostTensor &tensor);
reference::BlockListView listView(const Spec &spec, const HostTensor &tensor); // of block_list
std::vector<reference::Sequence> sequencesOf(const OperatorInputs &inputs);
// The whole forward's inputs in the words of the reference.
reference::Nsa referenceNsa(const OperatorInputs &inputs);

// All outputs that are there. `rows` of the queries, when there are any, stand for all.
OperatorCheck checkOperator(const OperatorInputs &inputs, const NamedTensors &outputs,
                            const std::vector<int64_t> &rows = {});

} // namespace nsa::tools
