// Paths that options and variables name: what is not there, or cannot be made, is refused when the engine opens, with
// the option or the variable, the path and the rule.
#include "runtime/engine/engine.h"
#include "runtime/engine/option_paths.h"
#include "tests/harness/no_environment.h"
#include "tests/harness/scratch.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <string>

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
      expectError(checkPaths(options, environment), isVariable ? option.variable : option.field, path, reason);
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
    EXPECT_TRUE(checkPaths(options, environment).isOk()) << checkPaths(options, environment).toString();
    // The option counts, whatever the variable names.
    options.*option.member = path;
    variables = {{option.variable, absent}};
    EXPECT_TRUE(checkPaths(options, environment).isOk()) << checkPaths(options, environment).toString();
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
    if (option.kind == PathOption::Kind::kNewFolder)
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
  expectError(checkPaths(options, environment), "cache_packs", absent, "No such file");
  options.cachePacks = "none";
  EXPECT_TRUE(checkPaths(options, environment).isOk());
  options.cacheKeys = file + ":" + file;
  EXPECT_TRUE(checkPaths(options, environment).isOk());
  options.cacheKeys = "none";
  expectError(checkPaths(options, environment), "cache_keys", "none", "No such file");
  variables = {{"NSA_CACHE_KEYS", file + "::" + file}};
  options.cacheKeys.clear();
  const Status malformed = checkPaths(options, environment);
  EXPECT_EQ(malformed.error().field, "NSA_CACHE_KEYS") << malformed.toString();
}

// The loader looks for them in places of its own.
TEST_F(OptionPaths, LibrariesMayBeNames) {
  EngineOptions options;
  options.compilerPath = "libnsa_compiler.so";
  options.nvrtcPath = "libnvrtc.so.13";
  EXPECT_TRUE(checkPaths(options, environment).isOk());
}

TEST_F(OptionPaths, WhatIsWrittenMustBePossibleToMake) {
  EngineOptions options;
  options.dumpDir = folder.file("a/b/c");
  EXPECT_TRUE(checkPaths(options, environment).isOk());
  EXPECT_FALSE(std::filesystem::exists(folder.file("a"))) << "it is only looked at";
  options.dumpDir = folder.path();
  EXPECT_TRUE(checkPaths(options, environment).isOk());
  for (const std::string &path : {file, file + "/below"}) {
    options.dumpDir = path;
    expectError(checkPaths(options, environment), "dump_dir", path, "nothing can be made in '" + file + "'");
  }
  options.dumpDir.clear();
  variables = {{"NSA_DUMP_DIR", file}};
  expectError(checkPaths(options, environment), "NSA_DUMP_DIR", file, "Not a directory");
}

TEST_F(OptionPaths, ThePlaceOfTheDatabase) {
  EngineOptions options;
  for (const std::string &path : {std::string(":memory:"), folder.file("a/b/kernels.db"), file}) {
    options.cachePath = path;
    EXPECT_TRUE(checkPaths(options, environment).isOk()) << path; // a file of something else is a later warning
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("a"))) << "it is only looked at";
  options.cachePath = folder.path();
  expectError(checkPaths(options, environment), "cache_path", folder.path(), "it is a folder");
  options.cachePath = file + "/below/kernels.db";
  expectError(checkPaths(options, environment), "cache_path", options.cachePath, "nothing can be made in '" + file);
  options.cachePath.clear();
  variables = {{"NSA_CACHE_DIR", folder.file("a/b")}};
  EXPECT_TRUE(checkPaths(options, environment).isOk());
  variables = {{"NSA_CACHE_DIR", file}};
  expectError(checkPaths(options, environment), "NSA_CACHE_DIR", file, "nothing can be made in '" + file);
  options.cachePath = folder.file("kernels.db"); // then the variable does not count
  EXPECT_TRUE(checkPaths(options, environment).isOk());
  // Neither names the default place: where it cannot be made, kernels are kept in memory.
  options.cachePath.clear();
  variables = {{"XDG_CACHE_HOME", file}, {"HOME", file}};
  EXPECT_TRUE(checkPaths(options, environment).isOk());
}

TEST_F(OptionPaths, AnEngineLooksBeforeItOpensAnything) {
  EngineOptions options;
  options.device = "cuda:99"; // which would be an error of its own
  options.templateDir = absent;
  expectError(Engine::open(options, test::noVariable).status(), "template_dir", absent, "No such file");
}

} // namespace
