// Paths that options and variables name: what is not there, or cannot be made, is refused when the engine opens, with
// the option or the variable, the path and the rule.
#include "runtime/engine/engine.h"
#include "runtime/engine/options/option_paths.h"
#include "tests/harness/no_environment.h"
#include "tests/harness/scratch.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace nsa;

namespace {

class OptionPaths : public testing::Test {
protected:
  // Of a path that is given as the option, then as the variable.
  void expectRefused(const PathOption &option, const std::string &path, const std::string &reason) {
    for (const bool isVariable : {false, true}) {
      EngineOptions options;
      variables.clear();
      (isVariable ? variables[option.variable] : options.*option.member) = path;
      expectError(check(options), isVariable ? option.variable : option.field, path, reason);
    }
  }
  void expectError(const Status &status, const std::string &name, const std::string &path, const std::string &reason) {
    ASSERT_FALSE(status.isOk()) << name << " = " << path;
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().field, name);
    EXPECT_EQ(status.error().value, path);
    EXPECT_TRUE(status.error().rule.starts_with("must be a ")) << status.error().rule;
    EXPECT_NE(status.error().rule.find(reason), std::string::npos) << status.error().rule;
  }
  void expectTaken(const PathOption &option, const std::string &path) {
    EngineOptions options;
    variables = {{option.variable, path}};
    EXPECT_TRUE(check(options).isOk()) << check(options).toString();
    // The option counts, whatever the variable names.
    options.*option.member = path;
    variables = {{option.variable, absent}};
    EXPECT_TRUE(check(options).isOk()) << check(options).toString();
  }
  Status check(EngineOptions options) const {
    const Status resolved = options.resolve(environment);
    return resolved.isOk() ? checkPaths(options) : resolved;
  }
  static bool isFile(PathOption::Kind kind) {
    return kind != PathOption::Kind::kFolder && kind != PathOption::Kind::kNewFolder;
  }

  test::Scratch folder;
  const std::string absent = folder.file("absent"), file = folder.write("file", "x");
  std::map<std::string, std::string> variables;
  EngineOptions::Environment environment = [this](const char *name) -> const char * {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
};

TEST_F(OptionPaths, WhatIsReadMustBeThere) {
  size_t read = 0;
  for (const PathOption &option : pathOptions()) {
    SCOPED_TRACE(option.field);
    if (option.kind == PathOption::Kind::kNewFolder || option.kind == PathOption::Kind::kDatabase ||
        option.kind == PathOption::Kind::kOpened)
      continue;
    ++read;
    expectRefused(option, absent, "No such file or directory");
    expectRefused(option, file + "/below", "Not a directory");
    expectRefused(option, isFile(option.kind) ? folder.path() : file, isFile(option.kind) ? "a folder" : "no folder");
    expectTaken(option, isFile(option.kind) ? file : folder.path());
  }
  EXPECT_EQ(read, 5u);
}

TEST_F(OptionPaths, OfAListTheFileAtFaultIsNamed) {
  EngineOptions options;
  options.cachePacks = file + ":" + absent;
  expectError(check(options), "cache_packs", absent, "No such file");
  options.cachePacks = "none";
  EXPECT_TRUE(check(options).isOk());
  options.cacheKeys = file + ":" + file;
  EXPECT_TRUE(check(options).isOk());
  options.cacheKeys = "absent";
  expectError(check(options), "cache_keys", std::filesystem::absolute("absent").string(), "No such file");
  variables = {{"NSA_CACHE_KEYS", file + "::" + file}};
  options.cacheKeys.clear();
  const Status malformed = check(options);
  EXPECT_EQ(malformed.error().field, "NSA_CACHE_KEYS") << malformed.toString();
}

// The loader looks for them in places of its own.
TEST_F(OptionPaths, LibrariesMayBeNames) {
  EngineOptions options;
  options.compilerPath = "libnsa_compiler.so";
  options.nvrtcPath = "libnvrtc.so.13";
  EXPECT_TRUE(check(options).isOk());
}

TEST_F(OptionPaths, WhatIsWrittenMustBePossibleToMake) {
  EngineOptions options;
  options.dumpDir = folder.file("a/b/c");
  EXPECT_TRUE(check(options).isOk());
  EXPECT_FALSE(std::filesystem::exists(folder.file("a"))) << "it is only looked at";
  options.dumpDir = folder.path();
  EXPECT_TRUE(check(options).isOk());
  for (const std::string &path : {file, file + "/below"}) {
    options.dumpDir = path;
    expectError(check(options), "dump_dir", path, "nothing can be made in '" + file + "'");
  }
  options.dumpDir.clear();
  variables = {{"NSA_DUMP_DIR", file}};
  expectError(check(options), "NSA_DUMP_DIR", file, "Not a directory");
}

TEST_F(OptionPaths, ThePlaceOfTheDatabase) {
  EngineOptions options;
  for (const std::string &path : {std::string(":memory:"), folder.file("a/b/kernels.db"), file}) {
    options.cachePath = path;
    EXPECT_TRUE(check(options).isOk()) << path; // a file of something else is a later warning
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("a"))) << "it is only looked at";
  options.cachePath = folder.path();
  expectError(check(options), "cache_path", folder.path(), "it is a folder");
  options.cachePath = file + "/below/kernels.db";
  expectError(check(options), "cache_path", options.cachePath, "nothing can be made in '" + file);
  options.cachePath.clear();
  variables = {{"NSA_CACHE_DIR", folder.file("a/b")}};
  EXPECT_TRUE(check(options).isOk());
  variables = {{"NSA_CACHE_DIR", file}};
  expectError(check(options), "NSA_CACHE_DIR", file, "nothing can be made in '" + file);
  options.cachePath = folder.file("kernels.db"); // then the variable does not count
  EXPECT_TRUE(check(options).isOk());
  // Neither names the default place: where it cannot be made, kernels are kept in memory.
  options.cachePath.clear();
  variables = {{"XDG_CACHE_HOME", file}, {"HOME", file}};
  EXPECT_TRUE(check(options).isOk());
}

// A host may leave its folder, and the child of its fork opens all files once more.
TEST_F(OptionPaths, EachPathBecomesAbsolute) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const PathOption &option : pathOptions())
    for (const bool isVariable : {false, true}) {
      SCOPED_TRACE(isVariable ? option.variable : option.field);
      EngineOptions options;
      variables.clear();
      (isVariable ? variables[option.variable] : options.*option.member) = "below/x";
      ASSERT_TRUE(options.resolve(environment).isOk());
      const bool isFolder = isVariable && option.kind == PathOption::Kind::kDatabase;
      EXPECT_EQ(options.*option.member, folder.file(isFolder ? "below/x/kernels.db" : "below/x"));
      EXPECT_EQ(options.sourceOf(option.member), isVariable ? option.variable : option.field);
    }
  EngineOptions options;
  variables.clear();
  options.cachePacks = "a:b";
  options.cacheKeys = file;
  options.cachePath = ":memory:";
  options.compilerPath = "libnsa_compiler.so";
  options.pinPath = options.recordPath = "none";
  ASSERT_TRUE(options.resolve(environment).isOk());
  EXPECT_EQ(options.cachePacks, folder.file("a") + ":" + folder.file("b"));
  EXPECT_EQ(options.cacheKeys, file);
  EXPECT_EQ(options.cachePath, ":memory:");
  EXPECT_EQ(options.compilerPath, "libnsa_compiler.so");
  EXPECT_EQ(options.pinPath + options.recordPath, "");
  options.cachePacks = "none";
  ASSERT_TRUE(options.resolve(environment).isOk());
  EXPECT_EQ(options.cachePacks, "none");
  // A list of files cannot name this folder, so its relative paths stay.
  std::filesystem::create_directory("a:b");
  std::filesystem::current_path("a:b");
  options.cachePacks = "x:y";
  ASSERT_TRUE(options.resolve(environment).isOk());
  EXPECT_EQ(options.cachePacks, "x:y");
  std::filesystem::current_path(before);
}

// Files are opened as the effective user, so the rights of that user count.
TEST_F(OptionPaths, TheEffectiveUserIsAsked) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root may become another user";
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EngineOptions reads, writes, stores;
  reads.cacheKeys = file;
  writes.dumpDir = folder.file("dump");
  stores.cachePath = folder.file("kernels.db");
  for (const EngineOptions &each : {reads, writes, stores})
    EXPECT_TRUE(check(each).isOk()) << check(each).toString();
  ASSERT_EQ(seteuid(12345), 0);
  const Status read = check(reads), written = check(writes), stored = check(stores);
  ASSERT_EQ(seteuid(0), 0);
  expectError(read, "cache_keys", file, "Permission denied");
  expectError(written, "dump_dir", writes.dumpDir, "Permission denied");
  expectError(stored, "cache_path", stores.cachePath, "Permission denied");
}

TEST_F(OptionPaths, AnEngineLooksBeforeItOpensAnything) {
  EngineOptions options;
  options.device = "cuda:99"; // which would be an error of its own
  options.templateDir = absent;
  expectError(Engine::open(options, test::noVariable).status(), "template_dir", absent, "No such file");
}

} // namespace
