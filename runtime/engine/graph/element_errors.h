// Measures how far the numbers of one kernel are from the numbers of another kernel. Elements that are NaN or infinite
// are counted separately, because one infinite error would hide all finite errors.
// Thread-safety: values.
#pragma once

#include "runtime/base/problem.h"

#include <cstddef>
#include <cstdint>

namespace nsa {

// The element at `index` of a tensor in host memory.
double elementAt(const std::byte *data, DType dtype, int64_t index);

class ElementErrors {
public:
  void add(double value, double expected);

  int64_t elements() const { return count; }
  // Return how many elements are NaN or infinite in only one of the two results, or infinite with another sign.
  int64_t unequalNan() const { return nanCount; }
  int64_t unequalInf() const { return infCount; }
  // Return the largest and the mean error, over the elements that are finite in both results.
  double maxAbs() const { return largest; }
  double meanAbs() const;
  // Returns the root of the sum of squared errors divided by the root of the sum of squared expected values.
  // relativeRms is infinite when a value differs and all expected values are 0.
  double relativeRms() const;

private:
  int64_t count = 0, finiteCount = 0, nanCount = 0, infCount = 0;
  double largest = 0, sumAbs = 0, sumSquares = 0, sumReference = 0;
};

} // namespace nsa
