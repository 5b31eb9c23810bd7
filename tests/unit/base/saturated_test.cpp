// Sizes that are exact as long as they fit, and then the largest number.
#include "runtime/base/saturated.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

TEST(Saturated, IsExactOrTheLargestNumber) {
  constexpr int64_t kHalf = int64_t{1} << 31;
  EXPECT_EQ((Saturated(6) * 7 + 1).value(), 43);
  EXPECT_EQ((Saturated(kHalf) * kHalf).value(), int64_t{1} << 62);
  EXPECT_EQ((Saturated(kHalf) * kHalf + ((int64_t{1} << 62) - 1)).value(), Saturated::kMost);
  EXPECT_EQ((Saturated(kHalf) * kHalf * 2).value(), Saturated::kMost);
  EXPECT_EQ((Saturated(kHalf) * kHalf * 4).value(), Saturated::kMost); // which wraps to 0
  EXPECT_EQ((Saturated(Saturated::kMost) + 1).value(), Saturated::kMost);
  EXPECT_EQ((Saturated(Saturated::kMost) * 0).value(), 0);
}

} // namespace
} // namespace nsa
