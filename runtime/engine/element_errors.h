// Measures how far one kernel's numbers are from another's. NaNs and infinities have no distance, so they are counted
// apart: one infinite error would hide all others.
// Thread-safety: values.
#pragma once

#include <cstdint>

namespace nsa {

class ElementErrors {
public:
  void add(double value, double expected);

  int64_t elements() const { return count; }
  // How many elements are NaN or infinite in only one of the two results, or infinite with another sign.
  int64_t unequalNan() const { return nanCount; }
  int64_t unequalInf() const { return infCount; }
  // These are over the elements that are finite in both results.
  double maxAbs() const { return largest; }
  double meanAbs() const;
  // The root of the sum of squared errors over that of squared expected values. Infinite when something differs and all
  // expected values are 0.
  double relativeRms() const;

private:
  int64_t count = 0, finiteCount = 0, nanCount = 0, infCount = 0;
  double largest = 0, sumAbs = 0, sumSquares = 0, sumReference = 0;
};

} // namespace nsa
