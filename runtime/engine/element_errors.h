// How far one kernel's numbers are from another's. NaNs and infinities have no distance and are counted instead: the
// worst fault must not make the figures of all others unreadable.
// Thread-safety: values.
#pragma once

#include <cstdint>

namespace nsa {

class ElementErrors {
public:
  void add(double value, double expected);

  int64_t elements() const { return count; }
  // In one of the two alone, or of another sign.
  int64_t unequalNan() const { return nanCount; }
  int64_t unequalInf() const { return infCount; }
  // Over the elements that are finite in both.
  double maxAbs() const { return largest; }
  double meanAbs() const;
  // Infinite where something differs and all that was expected is 0.
  double relativeRms() const;

private:
  int64_t count = 0, finiteCount = 0, nanCount = 0, infCount = 0;
  double largest = 0, sumAbs = 0, sumSquares = 0, sumReference = 0;
};

} // namespace nsa
