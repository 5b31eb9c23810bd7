// Thresholds between two ways to compute something, on made-up clocks.
#include "autotune/tuner/threshold.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace nsa;

namespace {

// A fixed cost and a rate, as kernels have.
struct Way {
  double fixedMs, perSize;
  double at(int64_t size) const { return fixedMs + perSize * static_cast<double>(size); }
};

const std::vector<int64_t> kGrid = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

Result<ThresholdReport> find(const Way &usual, const Way &other, const ThresholdOptions &options = {},
                             const std::vector<int64_t> &grid = kGrid) {
  return findThreshold(grid, options, [&](int64_t size) -> Result<SizeTimes> {
    return SizeTimes{size, usual.at(size), other.at(size)};
  });
}

// Where the other way becomes 1.2 times as fast: 1.2 (f2 + r2 s) = f1 + r1 s.
double exactCrossing(const Way &usual, const Way &other) {
  return (1.2 * other.fixedMs - usual.fixedMs) / (usual.perSize - 1.2 * other.perSize);
}

TEST(Threshold, IsNarrowedBetweenTwoSizesOfTheGrid) {
  const Way simple{1, 0.01}, tiled{4, 0.001};
  Result<ThresholdReport> report = find(simple, tiled);
  ASSERT_TRUE(report) << report.status().toString();
  ASSERT_TRUE(report->threshold);
  const double exact = exactCrossing(simple, tiled); // 431.8
  EXPECT_GE(static_cast<double>(*report->threshold), exact);
  EXPECT_LE(static_cast<double>(*report->threshold), 1.1 * exact);
  EXPECT_EQ(*report->threshold % 16, 0);
  EXPECT_GT(report->times.size(), kGrid.size());
  for (size_t i = 1; i < report->times.size(); ++i)
    EXPECT_LT(report->times[i - 1].size, report->times[i].size);
}

TEST(Threshold, UpToIsTheOtherSide) {
  const Way usual{4, 0.001}, other{1, 0.01};
  Result<ThresholdReport> report = find(usual, other, {.side = PayingSide::kUpTo});
  ASSERT_TRUE(report && report->threshold);
  const double exact = (usual.fixedMs - 1.2 * other.fixedMs) / (1.2 * other.perSize - usual.perSize);
  EXPECT_LE(static_cast<double>(*report->threshold), exact);
  EXPECT_GE(static_cast<double>(*report->threshold), 0.85 * exact);
}

// The defect of the thresholds that came before: a recommendation from a table in which the path always loses.
TEST(Threshold, NeverIsAnAnswer) {
  for (const PayingSide side : {PayingSide::kFrom, PayingSide::kUpTo}) {
    Result<ThresholdReport> slower = find({1, 0.01}, {2, 0.02}, {.side = side});
    ASSERT_TRUE(slower);
    EXPECT_FALSE(slower->threshold);
    EXPECT_EQ(slower->times.size(), kGrid.size()) << "nothing to narrow";
    Result<ThresholdReport> hardlyFaster = find({1, 0.01}, {0.9, 0.009}, {.side = side});
    ASSERT_TRUE(hardlyFaster);
    EXPECT_FALSE(hardlyFaster->threshold) << "below the margin";
  }
}

TEST(Threshold, AlwaysIsTheEndOfTheGrid) {
  EXPECT_EQ(find({1, 0.01}, {0.1, 0.001})->threshold, 16);
  EXPECT_EQ(find({1, 0.01}, {0.1, 0.001}, {.side = PayingSide::kUpTo})->threshold, 4096);
  EXPECT_EQ(find({1, 0.01}, {0.1, 0.001}, {}, {300})->threshold, 300);
}

// One lucky size in the middle of sizes that lose is no threshold.
TEST(Threshold, AWinThatDoesNotLastIsNone) {
  std::vector<SizeTimes> times = {{64, 2, 1}, {128, 2, 3}, {256, 2, 1.9}, {512, 2, 1}};
  EXPECT_EQ(thresholdOf(times, {}), 512);
  times.back().otherMs = 1.9;
  EXPECT_EQ(thresholdOf(times, {}), std::nullopt) << "64 is followed by a loss";
  EXPECT_EQ(thresholdOf(times, {.side = PayingSide::kUpTo}), 64);
}

TEST(Threshold, NoGridIsAnError) {
  auto none = [](int64_t size) -> Result<SizeTimes> { return SizeTimes{size, 1, 1}; };
  Result<ThresholdReport> empty = findThreshold({}, {}, none);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.status().error().field, "grid");
  EXPECT_FALSE(findThreshold({64, 64}, {}, none));
  EXPECT_FALSE(findThreshold({0, 64}, {}, none));
}

TEST(Threshold, ASizeThatCannotBeMeasuredEndsTheGrid) {
  auto small = [](int64_t size) -> Result<SizeTimes> {
    if (size > 256)
      return Status::error(ErrorCode::kOutOfMemory, "too large");
    return SizeTimes{size, 2, 1};
  };
  Result<ThresholdReport> report = findThreshold(kGrid, {}, small);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->threshold, 16);
  EXPECT_EQ(report->times.back().size, 256);
  EXPECT_EQ(report->end.code(), ErrorCode::kOutOfMemory);
  EXPECT_FALSE(coversSizes(*report, 16, 256).isOk()) << "the grid was to go on";
  Result<ThresholdReport> none = findThreshold({512, 1024}, {}, small);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.status().code(), ErrorCode::kOutOfMemory);
  auto noTime = [](int64_t size) -> Result<SizeTimes> { return SizeTimes{size, 0, NAN}; };
  EXPECT_EQ(findThreshold(kGrid, {}, noTime).status().code(), ErrorCode::kDeviceError);
}

// "Never" among two lengths is not one for the others.
TEST(Threshold, HoldsForTheSizesThatWereMeasured) {
  Result<ThresholdReport> report = find({1, 0.01}, {2, 0.02}, {}, {64, 128});
  ASSERT_TRUE(report);
  EXPECT_TRUE(coversSizes(*report, 64, 128).isOk());
  for (const auto &[least, most] : {std::pair(16, 128), std::pair(64, 4096)}) {
    const Status status = coversSizes(*report, least, most);
    EXPECT_EQ(status.error().field, "sizes");
    EXPECT_EQ(status.error().value, "64 to 128");
    EXPECT_NE(status.error().rule.find(std::to_string(most)), std::string::npos) << status.toString();
  }
}

// Noise of 3 %: the threshold stays near, and ways that are equal never get one.
TEST(Threshold, NoiseMovesItLittle) {
  const Way simple{1, 0.01}, tiled{4, 0.001};
  const double exact = exactCrossing(simple, tiled);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(1, 0.03);
    auto noisy = [&](const Way &usual, const Way &other) {
      return findThreshold(kGrid, {}, [&](int64_t size) -> Result<SizeTimes> {
        return SizeTimes{size, usual.at(size) * noise(random), other.at(size) * noise(random)};
      });
    };
    Result<ThresholdReport> report = noisy(simple, tiled);
    ASSERT_TRUE(report && report->threshold) << seed;
    EXPECT_GT(static_cast<double>(*report->threshold), 0.7 * exact) << seed;
    EXPECT_LT(static_cast<double>(*report->threshold), 1.4 * exact) << seed;
    EXPECT_FALSE(noisy(simple, simple)->threshold) << seed;
  }
}

} // namespace
