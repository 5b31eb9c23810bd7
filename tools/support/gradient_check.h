// Compares gradients with the fp64 reference (operator_check.h has all other operators).
// Thread-safety: the function is pure, and starts worker threads of its own.
#pragma once

#include "tools/support/operator_check.h"

#include <vector>

namespace nsa::tools {

// As checkOperator, for an operator that is a gradient of another one, but not for rotate_bwd. If `rows` names queries,
// the gradients of these queries and of a few keys are checked, and no gradient of a weight. The check of nsa_bwd then
// reads from `inputs` the outputs of the branches, which a call may leave out.
OperatorCheck checkGradient(const OperatorInputs &inputs, const NamedTensors &outputs,
                            const std::vector<int64_t> &rows);

} // namespace nsa::tools
