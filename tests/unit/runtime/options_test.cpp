// Options before environment before defaults, and every malformed value named with where it came from.
#include "runtime/engine/options/options.h"

#include "tests/harness/scratch.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace nsa;

namespace {

using Variables = std::map<std::string, std::string>;

EngineOptions::Environment environmentOf(const Variables &variables) {
  return [&variables](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

Status resolve(EngineOptions &options, const Variables &variables) { return options.resolve(environmentOf(variables)); }

TEST(Options, DefaultsWithoutEnvironment) {
  EngineOptions options;
  ASSERT_TRUE(resolve(options, {{"HOME", "/home/u"}}).isOk());
  EXPECT_EQ(options.device, "");
  EXPECT_EQ(options.cachePath, "/home/u/.cache/nsa/kernels.db");
  EXPECT_EQ(options.missPolicy, MissPolicy::kDefault);
  EXPECT_EQ(options.tuneBudgetSeconds, 30);
  EXPECT_EQ(options.cpuThreads, 0);
  EXPECT_GE(options.compileThreads, 1);
  EXPECT_EQ(options.logLevel, LogLevel::kWarning);
  EXPECT_EQ(options.logLimit, 20);
  EXPECT_EQ(options.fallbacks, FallbackSteps::all());
}

TEST(Options, APinnedTableExcludesTuning) {
  for (const char *policy : {"tune", "background"}) {
    EngineOptions options;
    const Variables variables = {{"NSA_PIN", "/p.nsapack"}, {"NSA_MISS", policy}};
    const Status status = resolve(options, variables);
    ASSERT_FALSE(status.isOk());
    EXPECT_EQ(status.error().field, "miss_policy");
    EXPECT_EQ(status.error().value, policy);
    EXPECT_EQ(options.pinPath, "/p.nsapack");
  }
  EngineOptions options;
  EXPECT_TRUE(resolve(options, {{"NSA_PIN", "/p.nsapack"}, {"NSA_MISS", "fail"}}).isOk());
  EngineOptions unpinned;
  unpinned.pinPath = "none";
  EXPECT_TRUE(resolve(unpinned, {{"NSA_PIN", "/p.nsapack"}, {"NSA_MISS", "tune"}}).isOk());
  EXPECT_EQ(unpinned.pinPath, "");
}

TEST(Options, EnvironmentFillsWhatIsUnset) {
  EngineOptions options;
  Variables variables = {{"NSA_DEVICE", "cpu"},
                         {"NSA_CACHE_DIR", "/c"},
                         {"NSA_MISS", "tune"},
                         {"NSA_TUNE_BUDGET", "2.5"},
                         {"NSA_COMPILER", "/l.so"},
                         {"NSA_NVRTC", "/n.so"},
                         {"NSA_TEMPLATE_DIR", "/t"},
                         {"NSA_FORCE_VARIANT", "v"},
                         {"NSA_DUMP_DIR", "/d"},
                         {"NSA_CPU_THREADS", "3"},
                         {"NSA_COMPILE_THREADS", "5"},
                         {"NSA_LOG", "debug"},
                         {"NSA_LOG_LIMIT", "7"},
                         {"NSA_FALLBACKS", "nearest,cpu"},
                         {"NSA_CPU_FEATURES", "x86-64-v3"},
                         {"NSA_CACHE_PACKS", "/a.nsapack:/b.nsapack"},
                         {"NSA_CACHE_KEYS", "/k.public"},
                         {"NSA_REQUIRE_SIGNATURE", "1"},
                         {"NSA_CACHE_MAX_BYTES", "1000000"}};
  ASSERT_TRUE(resolve(options, variables).isOk());
  EXPECT_EQ(options.device, "cpu");
  EXPECT_EQ(options.cachePath, "/c/kernels.db");
  EXPECT_EQ(options.missPolicy, MissPolicy::kTune);
  EXPECT_EQ(options.tuneBudgetSeconds, 2.5);
  EXPECT_EQ(options.compilerPath, "/l.so");
  EXPECT_EQ(options.nvrtcPath, "/n.so");
  EXPECT_EQ(options.templateDir, "/t");
  EXPECT_EQ(options.forceVariant, "v");
  EXPECT_EQ(options.dumpDir, "/d");
  EXPECT_EQ(options.cpuThreads, 3);
  EXPECT_EQ(options.compileThreads, 5);
  EXPECT_EQ(options.logLevel, LogLevel::kDebug);
  EXPECT_EQ(options.logLimit, 7);
  EXPECT_EQ(options.fallbacks->toString(), "nearest,cpu");
  EXPECT_EQ(options.cpuFeatures, "x86-64-v3");
  EXPECT_EQ(options.cachePacks, "/a.nsapack:/b.nsapack");
  EXPECT_EQ(options.cacheKeys, "/k.public");
  EXPECT_TRUE(options.requireSignature);
  EXPECT_EQ(options.cacheMaxBytes, 1000000);
}

// Only who asks for a limit cuts a search that leaves nothing out.
TEST(Options, AnExhaustiveSearchHasNoBudgetOfItsOwn) {
  EngineOptions options;
  ASSERT_TRUE(resolve(options, {{"NSA_TUNE_EXHAUSTIVE", "1"}, {"NSA_IGNORE_THRESHOLDS", "1"}}).isOk());
  EXPECT_TRUE(options.tuneExhaustive);
  EXPECT_TRUE(options.ignoreThresholds);
  EXPECT_GE(options.tuneBudgetSeconds, 3600);
  EngineOptions limited;
  limited.tuneExhaustive = true;
  ASSERT_TRUE(resolve(limited, {{"NSA_TUNE_BUDGET", "4"}}).isOk());
  EXPECT_EQ(limited.tuneBudgetSeconds, 4);
}

TEST(Options, TheApiWinsOverTheEnvironment) {
  EngineOptions options;
  options.device = "cuda:1";
  options.cachePath = "/mine.db";
  options.missPolicy = MissPolicy::kFail;
  options.tuneBudgetSeconds = 7;
  options.cpuThreads = 2;
  ASSERT_TRUE(resolve(options, {{"NSA_DEVICE", "cpu"},
                                {"NSA_CACHE_DIR", "/c"},
                                {"NSA_MISS", "nonsense, but not looked at"},
                                {"NSA_TUNE_BUDGET", "1"},
                                {"NSA_CPU_THREADS", "9"}})
                  .isOk());
  EXPECT_EQ(options.device, "cuda:1");
  EXPECT_EQ(options.cachePath, "/mine.db");
  EXPECT_EQ(options.missPolicy, MissPolicy::kFail);
  EXPECT_EQ(options.tuneBudgetSeconds, 7);
  EXPECT_EQ(options.cpuThreads, 2);
}

// What a variable switches on, a host may switch off.
TEST(Options, TheApiSwitchesOffWhatTheEnvironmentSets) {
  const Variables variables = {{"HOME", "/home/u"},
                               {"NSA_DEVICE", "cpu"},
                               {"NSA_CACHE_DIR", "/c"},
                               {"NSA_FALLBACKS", "nearest"},
                               {"NSA_LOG", "not looked at"},
                               {"NSA_MISS", "not looked at"},
                               {"NSA_TUNE_BUDGET", "1"},
                               {"NSA_COMPILER", "/l.so"},
                               {"NSA_NVRTC", "/n.so"},
                               {"NSA_TEMPLATE_DIR", "/t"},
                               {"NSA_FORCE_VARIANT", "v"},
                               {"NSA_DUMP_DIR", "/d"},
                               {"NSA_CPU_THREADS", "3"},
                               {"NSA_COMPILE_THREADS", "-not looked at"},
                               {"NSA_LOG_LIMIT", "7"},
                               {"NSA_CPU_FEATURES", "x86-64-v3"},
                               {"NSA_CACHE_PACKS", "/a.nsapack"},
                               {"NSA_CACHE_KEYS", "/k.public"},
                               {"NSA_REQUIRE_SIGNATURE", "1"},
                               {"NSA_CACHE_MAX_BYTES", "1000000"},
                               {"NSA_PIN", "/p.nsapack"},
                               {"NSA_RECORD", "/r"},
                               {"NSA_UNIFORM_GATE", "1"},
                               {"NSA_FORCE_BRANCH", "cmp"},
                               {"NSA_TUNE_EXHAUSTIVE", "1"},
                               {"NSA_IGNORE_THRESHOLDS", "1"},
                               {"NSA_DECODE_SPLITS", "4"}};
  EngineOptions options, unset;
#define NSA_OPTION_TEXT(member, name) options.member = kNone;
#define NSA_OPTION_SWITCH(member, name, variable) options.member = Switch::off();
#define NSA_OPTION_NUMBER(type, member, name) options.member = kOff;
#include "runtime/model/engine_options.def"
  options.missPolicy = MissPolicy::kDefault;
  options.logLevel = LogLevel::kDebug;
  options.fallbacks = *FallbackSteps::parse("fallbacks", kNone);
  const Status status = resolve(options, variables);
  ASSERT_TRUE(status.isOk()) << status.error().message;
  ASSERT_TRUE(resolve(unset, {{"HOME", "/home/u"}}).isOk());
  EXPECT_EQ(options.device, "") << "the engine looks for one";
  EXPECT_EQ(options.cachePath, ":memory:");
  EXPECT_EQ(options.fallbacks->toString(), "exact");
  EXPECT_EQ(options.missPolicy, MissPolicy::kDefault);
  EXPECT_EQ(options.logLevel, LogLevel::kDebug);
  EXPECT_EQ(options.compilerPath, unset.compilerPath);
  EXPECT_EQ(options.nvrtcPath, unset.nvrtcPath);
  EXPECT_EQ(options.templateDir, "");
  EXPECT_EQ(options.forceVariant, "");
  EXPECT_EQ(options.dumpDir, "");
  EXPECT_EQ(options.cpuFeatures, "");
  EXPECT_EQ(options.cachePacks, kNone) << "not even installed packs";
  EXPECT_EQ(options.cacheKeys, "");
  EXPECT_EQ(options.pinPath, "");
  EXPECT_EQ(options.recordPath, "");
  EXPECT_EQ(options.forceBranch, "");
  EXPECT_EQ(options.cpuThreads, 0);
  EXPECT_EQ(options.compileThreads, unset.compileThreads);
  EXPECT_EQ(options.logLimit, kOff);
  EXPECT_EQ(options.decodeSplits, 0);
  EXPECT_FALSE(options.requireSignature);
  EXPECT_FALSE(options.uniformGate);
  EXPECT_FALSE(options.tuneExhaustive);
  EXPECT_FALSE(options.ignoreThresholds);
  EXPECT_EQ(options.cacheMaxBytes, 0);
  EXPECT_GE(options.tuneBudgetSeconds, 3600) << "no limit";
  EXPECT_EQ(options.sourceOf(&EngineOptions::templateDir), "");
}

// A variable may name nothing, as an option may.
TEST(Options, TheEnvironmentNamesNothing) {
  EngineOptions options;
  ASSERT_TRUE(resolve(options, {{"HOME", "/home/u"},
                                {"NSA_DEVICE", "none"},
                                {"NSA_CACHE_DIR", "none"},
                                {"NSA_FALLBACKS", "none"},
                                {"NSA_PIN", "none"}})
                  .isOk());
  EXPECT_EQ(options.device, "");
  EXPECT_EQ(options.cachePath, ":memory:");
  EXPECT_EQ(options.fallbacks->toString(), "exact");
  EXPECT_EQ(options.pinPath, "");
}

// This program again, with the rights of another group as well as the caller's.
TEST(Options, NoVariableCountsInAProgramWithMoreRights) {
  const EngineOptions::Environment environment = EngineOptions::processEnvironment();
  constexpr const char *kVariable = "NSA_COMPILER", *kCopy = "NSA_TEST_OPTIONS_COPY";
  if (std::getenv(kCopy)) {
    if (getauxval(AT_SECURE) == 0)
      GTEST_SKIP() << "the file system or the process forbids such programs";
    EXPECT_STREQ(std::getenv(kVariable), "/planted.so");
    EXPECT_EQ(environment(kVariable), nullptr);
    return;
  }
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  const test::Scratch folder;
  const std::string copy = folder.file("copy");
  ASSERT_TRUE(std::filesystem::copy_file("/proc/self/exe", copy));
  ASSERT_EQ(chown(copy.c_str(), 0, 65534), 0);
  ASSERT_EQ(chmod(copy.c_str(), 02755), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv(kVariable, "/planted.so", 1);
    setenv(kCopy, "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); // which would trace a process that may not be traced
    for (const char *name : {"GTEST_OUTPUT", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"})
      unsetenv(name);
    execl(copy.c_str(), copy.c_str(), "--gtest_filter=Options.NoVariableCountsInAProgramWithMoreRights", nullptr);
    _exit(126);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  constexpr int kSkipped = 77;
  if (WEXITSTATUS(status) == kSkipped)
    GTEST_SKIP() << "no program gets another group's rights here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Options, CachePlaces) {
  const struct {
    Variables variables;
    const char *path;
  } rows[] = {{{{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}, "/x/nsa/kernels.db"},
              {{{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}}, "/h/.cache/nsa/kernels.db"},
              {{{"NSA_CACHE_DIR", ""}, {"HOME", "/h"}}, "/h/.cache/nsa/kernels.db"},
              {{}, ":memory:"}};
  for (const auto &row : rows) {
    EngineOptions options;
    ASSERT_TRUE(resolve(options, row.variables).isOk());
    EXPECT_EQ(options.cachePath, row.path);
  }
}

TEST(Options, MalformedVariablesAreNamed) {
  const struct {
    const char *variable;
    const char *value;
  } rows[] = {{"NSA_MISS", "sometimes"},        {"NSA_TUNE_BUDGET", "soon"},    {"NSA_TUNE_BUDGET", "-1"},
              {"NSA_TUNE_BUDGET", "nan"},       {"NSA_CPU_THREADS", "two"},     {"NSA_CPU_THREADS", "-1"},
              {"NSA_CPU_THREADS", "3x"},        {"NSA_CPU_THREADS", "5000"},    {"NSA_COMPILE_THREADS", "1.5"},
              {"NSA_REQUIRE_SIGNATURE", "yes"}, {"NSA_CACHE_MAX_BYTES", "-1"},  {"NSA_CACHE_MAX_BYTES", "1MB"},
              {"NSA_FALLBACKS", "nought"},      {"NSA_LOG_LIMIT", "0"},         {"NSA_LOG_LIMIT", "many"},
              {"NSA_FORCE_BRANCH", "slc"},      {"NSA_UNIFORM_GATE", "yes"},    {"NSA_LOG", "loud"},
              {"NSA_TUNE_EXHAUSTIVE", "all"},   {"NSA_IGNORE_THRESHOLDS", "2"}, {"NSA_DECODE_SPLITS", "17"},
              {"NSA_DECODE_SPLITS", "few"}};
  for (const auto &row : rows) {
    EngineOptions options;
    Status status = resolve(options, {{row.variable, row.value}});
    ASSERT_FALSE(status.isOk()) << row.variable << "=" << row.value;
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, row.variable);
    EXPECT_NE(status.error().value.find(row.value), std::string::npos);
    EXPECT_FALSE(status.error().rule.empty());
  }
}

TEST(Options, MalformedOptionsAreNamed) {
  EngineOptions negativeBudget;
  negativeBudget.tuneBudgetSeconds = -2;
  EXPECT_EQ(resolve(negativeBudget, {}).error().field, "tune_budget_seconds");
  EngineOptions negativeThreads;
  negativeThreads.cpuThreads = -2;
  EXPECT_EQ(resolve(negativeThreads, {}).error().field, "cpu_threads");
  EngineOptions manyThreads;
  manyThreads.compileThreads = 1 << 20;
  EXPECT_EQ(resolve(manyThreads, {}).error().field, "compile_threads");
}

} // namespace
