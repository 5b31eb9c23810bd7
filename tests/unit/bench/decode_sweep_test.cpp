// Which way of decode a sweep keeps.
#include "bench/verbs/decode_sweep.h"

#include <gtest/gtest.h>

namespace nsa::bench {
namespace {

// The rule takes 1 ms.
int64_t best(double fourShares, double eightShares, double oneKernel) {
  return bestOf(
      {{{}, 1.0}, {{.splits = 4}, fourShares}, {{.splits = 8}, eightShares}, {{.isOneKernel = true}, oneKernel}});
}

TEST(DecodeSweep, KeepsTheFastestWayThatBeatsTheOthersByItsMargin) {
  EXPECT_EQ(best(1.1, 0.95, 1.06), StoredRoute::kNever);
  EXPECT_EQ(best(1.1, 0.95, 1.04), kTakesStep) << "other ways must be 1.05 times as fast as one kernel";
  EXPECT_EQ(best(0.85, 0.9, 1.06), StoredRoute::kNever) << "and a number of shares 1.2 times as fast as the rule";
  EXPECT_EQ(best(0.8, 0.82, 0.9), 4);
  EXPECT_EQ(best(0.8, 0.7, 0.75), 8);
  EXPECT_EQ(best(0.8, 0.7, 0.73), kTakesStep);
  EXPECT_EQ(best(0.8, 0.7, 0.4), kTakesStep);
  EXPECT_EQ(bestOf({{{}, 1.0}, {{.splits = 4}, 0.8}}), 4);
  EXPECT_EQ(bestOf({{{}, 1.0}}), StoredRoute::kNever);
  EXPECT_GT(kTakesStep, KeySplits::kMost) << "no number of shares";
}

} // namespace
} // namespace nsa::bench
