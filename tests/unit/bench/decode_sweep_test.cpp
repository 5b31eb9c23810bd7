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

TEST(DecodeSweep, KeepsTheFastestWayThatBeatsTheRuleByItsMargin) {
  EXPECT_EQ(best(1.1, 0.95, 1.2), StoredRoute::kNever);
  EXPECT_EQ(best(0.85, 0.9, 0.96), StoredRoute::kNever) << "margins are 1.2 for shares and 1.05 for one kernel";
  EXPECT_EQ(best(0.8, 0.82, 1.2), 4);
  EXPECT_EQ(best(0.8, 0.7, 0.75), 8);
  EXPECT_EQ(best(0.8, 0.7, 0.4), kTakesStep);
  EXPECT_EQ(best(0.9, 0.85, 0.94), kTakesStep) << "faster shares are within their margin";
  EXPECT_EQ(bestOf({{{}, 1.0}}), StoredRoute::kNever);
  EXPECT_GT(kTakesStep, KeySplits::kMost) << "no number of shares";
}

} // namespace
} // namespace nsa::bench
