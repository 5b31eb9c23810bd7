// The limit on warnings with a clock of the test's own: what gets through, what is said of the rest, and when it ends.
#include "runtime/process/log_limit.h"

#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace nsa;

namespace {

struct LogLimitTest : testing::Test {
  Logger::Sink limited(LogLimit limit) {
    return limitLog(
        [this](LogLevel level, std::string_view tag, std::string_view message) {
          std::lock_guard lock(mutex);
          lines.push_back(std::string(logLevelName(level)) + " " + std::string(tag) + " " + std::string(message));
        },
        limit, [this] { return now; }, dropped);
  }

  std::mutex mutex;
  std::vector<std::string> lines;
  double now = 1000;
  std::atomic<uint64_t> dropped{0};
};
using Lines = std::vector<std::string>;

TEST_F(LogLimitTest, TheRestIsSaidOnceAndCountedWhenThePeriodIsOver) {
  const Logger::Sink sink = limited({.lines = 2, .seconds = 60});
  for (int i = 1; i <= 5; ++i)
    sink(LogLevel::kWarning, "cache", std::to_string(i));
  EXPECT_EQ(lines, (Lines{"warning cache 1", "warning cache 2",
                          "warning cache more than 2 warnings within 60 s: further ones are left out"}));
  EXPECT_EQ(dropped, 3u);
  lines.clear();
  now += 59.9;
  sink(LogLevel::kWarning, "cache", "6");
  EXPECT_TRUE(lines.empty());
  now += 0.1;
  sink(LogLevel::kWarning, "cache", "7");
  sink(LogLevel::kWarning, "cache", "8");
  EXPECT_EQ(lines, (Lines{"warning cache 4 warnings were left out", "warning cache 7", "warning cache 8"}));
  EXPECT_EQ(dropped, 4u);
}

TEST_F(LogLimitTest, EachTagHasItsOwnAndOtherLevelsNone) {
  const Logger::Sink sink = limited({.lines = 1, .seconds = 60});
  for (const char *tag : {"cache", "planner"})
    sink(LogLevel::kWarning, tag, "w");
  for (int i = 0; i < 3; ++i)
    for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kError})
      sink(level, "cache", "l");
  EXPECT_EQ(lines.size(), 2u + 9u);
  EXPECT_EQ(dropped, 0u);
}

TEST_F(LogLimitTest, AQuietPeriodBeginsAnewWithoutAWord) {
  const Logger::Sink sink = limited({.lines = 2, .seconds = 60});
  for (int i = 0; i < 10; ++i, now += 30)
    sink(LogLevel::kWarning, "cache", "w");
  EXPECT_EQ(lines.size(), 10u);
}

TEST_F(LogLimitTest, WithoutALimitEverythingPasses) {
  const Logger::Sink sink = limited({.lines = -1, .seconds = 60});
  for (int i = 0; i < 100; ++i)
    sink(LogLevel::kWarning, "cache", "w");
  EXPECT_EQ(lines.size(), 100u);
  EXPECT_FALSE(limitLog({}, {}, [] { return 0.0; }, dropped)) << "no sink, no limit";
}

TEST_F(LogLimitTest, ThreadsShareTheLimit) {
  const Logger::Sink sink = limited({.lines = 20, .seconds = 60});
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i)
          sink(LogLevel::kWarning, "cache", "w");
      });
  }
  EXPECT_EQ(lines.size(), 21u);
  EXPECT_EQ(dropped, 380u);
}

} // namespace
