#include "runtime/base/cpu_features.h"
#include "runtime/base/text.h"
#include "runtime/process/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nsa {
namespace {

TEST(Logger, PassesOnFromTheLeastLevel) {
  std::vector<std::string> lines;
  Logger logger(
      [&](LogLevel level, std::string_view tag, std::string_view message) {
        lines.push_back(std::string(logLevelName(level)) + " " + std::string(tag) + " " + std::string(message));
      },
      LogLevel::kWarning);
  EXPECT_FALSE(logger.enabled(LogLevel::kInfo));
  logger.log(LogLevel::kInfo, "cache", "unseen");
  logger.log(LogLevel::kError, "cache", "seen");
  EXPECT_EQ(lines, std::vector<std::string>{"error cache seen"});
}

TEST(Logger, WritesControlCharactersOut) {
  std::string line;
  const Logger logger([&](LogLevel, std::string_view, std::string_view message) { line = message; }, LogLevel::kDebug);
  logger.log(LogLevel::kError, "cache", "a\x1b[2Jb\nc\x7f\xc2\x9b d \xc3\xa4\xc2\xb5");
  EXPECT_EQ(line, "a\\x1b[2Jb\\nc\\x7f\\x9b d \xc3\xa4\xc2\xb5");
  EXPECT_EQ(printable("a\tb\nc\r", "\n\t"), "a\tb\nc\\x0d");
}

TEST(Logger, SilentWithoutASink) {
  Logger().log(LogLevel::kError, "cache", "no sink listens");
  Logger empty({}, LogLevel::kDebug);
  EXPECT_FALSE(empty.enabled(LogLevel::kError));
}

TEST(Logger, LevelNames) {
  for (int number = 0; number <= 4; ++number) {
    LogLevel level;
    ASSERT_TRUE(parseLogLevel(logLevelName(static_cast<LogLevel>(number)), level));
    EXPECT_EQ(static_cast<int>(level), number);
  }
  LogLevel level;
  EXPECT_FALSE(parseLogLevel("loud", level));
}

TEST(CpuFeatures, LanesOfEachLevel) {
  EXPECT_EQ(*cpuVectorLanes("x86-64-v4"), 16);
  EXPECT_EQ(*cpuVectorLanes("x86-64-v3"), 8);
  Result<int> unknown = cpuVectorLanes("sse9");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.status().error().field, "cpu_features");
  EXPECT_EQ(unknown.status().error().value, "'sse9'");
}

} // namespace
} // namespace nsa
