// The tuner's gate: does a candidate compute what the tile program computes? Tolerances are those of
// docs/specification.md 11. Thread-safety: pure functions.
#pragma once

#include "runtime/base/problem.h"
#include "runtime/engine/tuning_result.h"

namespace nsa {

// The error says which measure failed, by how much, and where.
Status compareResults(const TuningResult &reference, const TuningResult &result, DType dtype);

} // namespace nsa
