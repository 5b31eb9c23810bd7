#include "runtime/engine/graph/element_errors.h"

#include <algorithm>
#include <cmath>

namespace nsa {

void ElementErrors::add(double value, double expected) {
  ++count;
  if (std::isnan(value) || std::isnan(expected)) {
    nanCount += std::isnan(value) != std::isnan(expected);
    return;
  }
  if (std::isinf(value) || std::isinf(expected)) {
    infCount += value != expected;
    return;
  }
  ++finiteCount;
  const double error = std::fabs(value - expected);
  largest = std::max(largest, error);
  sumAbs += error;
  sumSquares += error * error;
  sumReference += expected * expected;
}

double ElementErrors::meanAbs() const { return sumAbs / static_cast<double>(std::max<int64_t>(finiteCount, 1)); }

double ElementErrors::relativeRms() const { return sumSquares == 0 ? 0 : std::sqrt(sumSquares / sumReference); }

} // namespace nsa
