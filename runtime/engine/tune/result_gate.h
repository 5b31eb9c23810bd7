// Decides whether the tuner accepts a candidate kernel: the candidate's result must agree with the result of the kernel
// that defines the operator, within the tolerances of docs/specification.md 11.
// Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/tune/tuning_result.h"

namespace nsa {

// compareResults fails when a result is outside of its tolerance. The error of compareResults names the output, the
// error measure that is too large, its value and the limit.
Status compareResults(const TuningResult &reference, const TuningResult &result, DType dtype);

} // namespace nsa
