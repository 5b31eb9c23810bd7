// From which length on one implementation beats another: never, always, and between two lengths.
#include "autotune/tuner/crossover.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

TEST(Crossover, IsNoneWhereNothingIsWon) {
  EXPECT_FALSE(crossoverOf({}));
  EXPECT_FALSE(crossoverOf({{1024, 3, 1}, {2048, 4, 4}})) << "as fast is not faster";
}

TEST(Crossover, LiesAtOrBelowTheShortestLengthWonThere) {
  const std::optional<Crossover> crossover = crossoverOf({{1024, 1, 2}, {2048, 5, 4}});
  ASSERT_TRUE(crossover);
  EXPECT_EQ(crossover->measured, 1024);
  EXPECT_FALSE(crossover->interpolated);
  EXPECT_EQ(crossover->toString(), "at 1024 tokens, the shortest length measured, or below it");
}

TEST(Crossover, IsInterpolatedBetweenLogarithms) {
  // Twice as slow at 1024, twice as fast at 4096: even in the middle of the logarithms. The order does not matter.
  const std::optional<Crossover> crossover = crossoverOf({{4096, 1, 2}, {1024, 2, 1}});
  ASSERT_TRUE(crossover);
  EXPECT_EQ(crossover->measured, 4096);
  EXPECT_EQ(crossover->interpolated, 2048);
  EXPECT_EQ(crossover->toString(), "at 4096 tokens, about 2048 by interpolation");
  // Three times as far ahead at the longer length as behind at the shorter one: a quarter of the way.
  EXPECT_EQ(crossoverOf({{1000, 2, 1}, {16000, 1, 8}})->interpolated, 2000);
}

TEST(Crossover, TakesTheFirstLengthThatIsWon) {
  EXPECT_EQ(crossoverOf({{1, 2, 1}, {2, 1, 2}, {4, 2, 1}, {8, 1, 2}})->measured, 2);
}

} // namespace
} // namespace nsa
