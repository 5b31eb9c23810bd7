// Compares the outputs of an operator with the fp64 reference by the rules of docs/specification.md 11. For the
// attention outputs, the reference uses the block lists that the operator itself computed. A block list is right if
// each block in which it differs from the reference's list has nearly the same score as the block that it replaces. The
// counts in the output `reads` must be equal to the counts of the reference.
// Thread-safety: the functions are pure, and start worker threads of their own.
#pragma once

#include "tools/reference/error_metrics.h"
#include "tools/reference/list_check.h"
#include "tools/reference/nsa.h"
#include "tools/support/operator_job.h"

#include <optional>
#include <string>
#include <vector>

namespace nsa::tools {

// The result of the check of one output tensor. `error` and its limits are set for a tensor of result rows, and `lists`
// for the tensor block_list.
struct OutputCheck {
  std::string name; // "out", "o_cmp", "block_list", ...
  bool within = false;
  std::string text = {}; // numbers and limits, or the first fault
  std::optional<reference::ErrorReport> error = {};
  std::optional<reference::ListReport> lists = {};
  reference::Tolerance limits = {};
  bool isRightElsewhere = false; // whether all rows are within the limits whose reference is finite
};

struct OperatorCheck {
  std::vector<OutputCheck> outputs;
  bool within() const;
  // Returns whether the check failed only because the reference's result is not finite in some rows. A row whose
  // reference is not finite has no error that could be compared with a limit (docs/specification.md 11).
  bool isUnjudged() const;
  std::string toString() const; // one line for each output
};

reference::TensorView viewOf(const Spec &spec, TensorName name, const HostTensor &tensor);
reference::BlockListView listView(const Spec &spec, const HostTensor &tensor); // of block_list
std::vector<reference::Sequence> sequencesOf(const OperatorInputs &inputs);
// Returns the inputs of the whole forward pass in the types that the fp64 reference takes.
reference::Nsa referenceNsa(const OperatorInputs &inputs);

// Checks all outputs in `outputs`. If `rows` names queries, only the outputs of these queries are checked.
OperatorCheck checkOperator(const OperatorInputs &inputs, const NamedTensors &outputs,
                            const std::vector<int64_t> &rows = {});

// Checks what a call of a gradient of attention or of nsa reads of its forward pass: `out` and `lse` must be the
// results for the call's queries, keys and values, and of nsa `o_*`, `lse_*`, `k_comp` and `v_comp` those for the
// call's lists.
OperatorCheck checkSaved(const OperatorInputs &inputs);

// Checks whether a call of decode changed its cache correctly, and returns a verdict for each tensor of the cache.
// `outputs` has the tensors as they are after the call. The row of each new token must be an exact copy of the token's
// key or value. The row of each new compressed block is compared with the compression phi of the block's tokens,
// computed in fp64. All other bytes of the cache must be the same as before the call.
std::vector<OutputCheck> checkCache(const OperatorInputs &inputs, const NamedTensors &outputs);

} // namespace nsa::tools
