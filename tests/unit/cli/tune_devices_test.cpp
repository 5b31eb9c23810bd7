// The options that a tuning of the command line reads are those that its engines get.
#include "tools/nsa/tune/tune_devices.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

TEST(TuneDevices, EverySettingIsOfTheResolvedOptions) {
  EngineSettings settings;
#define NSA_OPTION_TEXT(member, name) settings.member = "cmp"; // which is also a gate's name
#define NSA_OPTION_SWITCH(member, name, variable) settings.member = NSA_ON;
#define NSA_OPTION_NUMBER(type, member, name) settings.member = 3;
#include "runtime/model/engine_options.def"
  settings.uniformGate = NSA_OFF; // it excludes a gate by hand
  settings.fallbacks = "nearest";
  settings.missPolicy = NSA_MISS_FAIL;
  settings.logLevel = NSA_LOG_ERROR;
  const Result<EngineOptions> options = resolvedOptions(settings);
  ASSERT_TRUE(options) << options.status().toString();
#define NSA_OPTION_TEXT(member, name) EXPECT_TRUE(options->member.ends_with("cmp")) << #name << ": " << options->member;
#define NSA_OPTION_SWITCH(member, name, variable) EXPECT_EQ(options->member, settings.member == NSA_ON) << #name;
#define NSA_OPTION_NUMBER(type, member, name) EXPECT_EQ(options->member, 3) << #name;
#include "runtime/model/engine_options.def"
  EXPECT_EQ(options->fallbacks->toString(), "nearest");
  EXPECT_EQ(options->missPolicy, MissPolicy::kFail);
  EXPECT_EQ(options->logLevel, LogLevel::kError);
}

TEST(TuneDevices, ASettingThatBreaksARuleIsNamed) {
  EngineSettings settings;
  settings.tuneExhaustive = 2;
  EXPECT_EQ(resolvedOptions(settings).status().error().field, "tune_exhaustive");
}

} // namespace
} // namespace nsa::tools
