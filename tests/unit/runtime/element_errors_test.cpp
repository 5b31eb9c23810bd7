// What a comparison of two kernels counts, and that no infinity hides the rest.
#include "runtime/engine/graph/element_errors.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace nsa;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ElementErrors, FiniteOnesAreMeasured) {
  ElementErrors errors;
  EXPECT_EQ(errors.meanAbs() + errors.relativeRms(), 0);
  errors.add(1, 1);
  errors.add(-4, -3);
  EXPECT_EQ(errors.elements(), 2);
  EXPECT_EQ(errors.maxAbs(), 1);
  EXPECT_EQ(errors.meanAbs(), 0.5);
  EXPECT_DOUBLE_EQ(errors.relativeRms(), std::sqrt(0.1));
  EXPECT_EQ(errors.unequalNan() + errors.unequalInf(), 0);
}

TEST(ElementErrors, TheOthersAreCountedAndHideNothing) {
  ElementErrors errors;
  errors.add(-4, -3);
  errors.add(kInf, 2); // the fault that is looked for
  errors.add(2, -kInf);
  errors.add(kInf, -kInf);
  errors.add(kInf, kInf);
  EXPECT_EQ(errors.unequalInf(), 3);
  errors.add(kNan, kNan);
  errors.add(kNan, 1);
  errors.add(kInf, kNan);
  EXPECT_EQ(errors.unequalNan(), 2);
  EXPECT_EQ(errors.unequalInf(), 3);
  EXPECT_EQ(errors.elements(), 8);
  EXPECT_EQ(errors.maxAbs(), 1);
  EXPECT_EQ(errors.meanAbs(), 1);
  EXPECT_DOUBLE_EQ(errors.relativeRms(), 1.0 / 3);
}

} // namespace
