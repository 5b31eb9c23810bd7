#include "runtime/engine/result_gate.h"

#include <cmath>
#include <cstdio>

namespace nsa {

namespace {

constexpr double kRowFactor = 4; // no single row above so many times the tolerance
constexpr double kLseTolerance = 1e-3;

// Relative RMS against exact arithmetic. Two right results differ by less than the sum of two such errors; correct
// kernels measure near a third of the bound, so the bound itself serves for the difference.
double tolerance(DType dtype) {
  switch (dtype) {
  case DType::kBf16:
    return 5e-3;
  case DType::kF16:
    return 1e-3;
  default:
    return 1e-5;
  }
}

Status differs(const char *field, double value, double limit, size_t row) {
  char text[160];
  snprintf(text, sizeof text, "row %zu: %.3g is above %.3g", row, value, limit);
  return Status::error(ErrorCode::kInternal, std::string(field) + " differs from the tile program's: " + text);
}

Status notWritten(const char *field, size_t index) {
  return Status::error(ErrorCode::kInternal,
                       std::string(field) + " holds NaN (or was not written) at element " + std::to_string(index));
}

} // namespace

Status compareResults(const TuningResult &reference, const TuningResult &result, DType dtype) {
  assert(reference.out.size() == result.out.size() && reference.lse.size() == result.lse.size());
  auto columns = static_cast<size_t>(reference.rowElements);
  double limit = tolerance(dtype);
  double sumSquares = 0, sumErrors = 0, worst = 0;
  size_t worstRow = 0;
  for (size_t row = 0; row * columns < reference.out.size(); ++row) {
    double squares = 0, errors = 0;
    for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
      if (std::isnan(result.out[i]))
        return notWritten("out", i);
      double error = static_cast<double>(result.out[i]) - reference.out[i];
      errors += error * error;
      squares += static_cast<double>(reference.out[i]) * reference.out[i];
    }
    sumSquares += squares;
    sumErrors += errors;
    // A row of zeros must be met exactly.
    double relative = errors == 0 ? 0 : std::sqrt(errors / squares);
    if (!(relative <= worst)) {
      worst = relative;
      worstRow = row;
    }
  }
  double total = sumErrors == 0 ? 0 : std::sqrt(sumErrors / sumSquares);
  if (!(total <= limit))
    return differs("out (relative RMS of all rows, with the worst)", total, limit, worstRow);
  if (!(worst <= kRowFactor * limit))
    return differs("out (relative RMS)", worst, kRowFactor * limit, worstRow);
  for (size_t i = 0; i < reference.lse.size(); ++i) {
    if (std::isnan(result.lse[i]))
      return notWritten("lse", i);
    // Equal infinities have no difference to compute.
    if (result.lse[i] != reference.lse[i] && !(std::fabs(result.lse[i] - reference.lse[i]) <= kLseTolerance))
      return differs("lse (absolute)", std::fabs(result.lse[i] - reference.lse[i]), kLseTolerance, i);
  }
  return Status::ok();
}

} // namespace nsa
