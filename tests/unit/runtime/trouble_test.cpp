// What goes wrong around a plan: no compiler, no driver, a cache that is damaged, foreign, read-only or not there.
// Cache trouble is warned about once and never fails a plan; the rest is an error that says what to do.
#include "runtime/cuda/driver.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/engine.h"
#include "tests/harness/no_environment.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace nsa;

namespace {

class Trouble : public testing::Test {
protected:
  Trouble() {
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = 8;
    spec.vDim = 16;
    maxima = {2, 40, 20, 40};
    options.device = "cpu";
    options.cachePath = cache;
    options.missPolicy = MissPolicy::kFail;
    options.cpuThreads = 1;
    options.compilerPath = noCompiler;
    options.logLevel = LogLevel::kWarning;
    options.log = [this](LogLevel, std::string_view tag, std::string_view message) {
      std::lock_guard lock(mutex);
      log.push_back(std::string(tag) + ": " + std::string(message));
    };
  }

  EnginePointer open() {
    Result<EnginePointer> engine = Engine::open(options, test::noVariable);
    EXPECT_TRUE(engine.isOk()) << engine.status().toString();
    return engine ? std::move(*engine) : nullptr;
  }
  Status planStatus(Engine &engine) { return engine.plan(spec, maxima, nullptr).status(); }
  void store(const test::KernelText &text = {}) { test::storeKernel(cache, spec, maxima, text, test::countingCode()); }

  test::Scratch folder;
  std::string cache = folder.file("kernels.db");
  const std::string noCompiler = "absent.so"; // which no loader finds
  Spec spec;
  Maxima maxima;
  EngineOptions options;
  std::mutex mutex;
  std::vector<std::string> log;
};

TEST_F(Trouble, FailPolicyNamesTheKeyAndTheCommand) {
  auto engine = open();
  Status status = planStatus(*engine);
  ASSERT_FALSE(status.isOk());
  EXPECT_EQ(status.code(), ErrorCode::kCacheMiss);
  EXPECT_NE(status.error().message.find(Problem::make(spec, maxima).key()), std::string::npos) << status.toString();
  EXPECT_NE(status.error().message.find(test::cpuDeviceKey()), std::string::npos);
  EXPECT_NE(status.error().hint.find("nsa tune --op window"), std::string::npos) << status.error().hint;
  EXPECT_NE(status.error().hint.find("\"query_heads\":4"), std::string::npos);
  EXPECT_EQ(engine->counters().plansFailed, 1u);
}

TEST_F(Trouble, ATypeThatNoKernelHasIsNamed) {
  options.missPolicy = MissPolicy::kDefault;
  auto engine = open();
  spec.cacheDtype = DType::kFp8E4M3;
  EXPECT_EQ(
      planStatus(*engine).toString(),
      "invalid argument: cache_dtype = fp8_e4m3: must be bf16, the dtype: no kernel reads a cache of another type");
}

TEST_F(Trouble, ACompilerThatCannotBeOpenedIsClear) {
  for (MissPolicy policy : {MissPolicy::kDefault, MissPolicy::kTune}) {
    options.missPolicy = policy;
    auto engine = open();
    Status status = planStatus(*engine);
    ASSERT_FALSE(status.isOk());
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
    EXPECT_NE(status.error().message.find(noCompiler), std::string::npos) << status.toString();
    EXPECT_NE(status.error().hint.find("NSA_COMPILER"), std::string::npos);
  }
}

TEST_F(Trouble, LibrariesThatAreNoCompiler) {
  const struct {
    const char *file;
    const char *message;
  } rows[] = {{"libm.so.6", "is not a compiler library"}, {NSA_FOREIGN_COMPILER, "does not serve ABI version"}};
  for (const auto &row : rows) {
    Result<std::shared_ptr<const CompilerLibrary>> library = CompilerLibrary::open(row.file);
    ASSERT_FALSE(library.isOk());
    EXPECT_EQ(library.status().code(), ErrorCode::kUnavailable);
    EXPECT_NE(library.status().error().message.find(row.message), std::string::npos) << library.status().toString();
  }
}

TEST_F(Trouble, AStoredKernelNeedsNoCompiler) {
  store();
  for (MissPolicy policy : {MissPolicy::kFail, MissPolicy::kDefault, MissPolicy::kTune}) {
    options.missPolicy = policy;
    auto engine = open();
    Status status = planStatus(*engine);
    EXPECT_TRUE(status.isOk()) << status.toString();
  }
  EXPECT_TRUE(log.empty()) << log.front();
}

TEST_F(Trouble, NoDriverIsUnavailableWithAHint) {
  if (cuda::Driver::get().isOk())
    GTEST_SKIP() << "this machine has a CUDA driver";
  options.device = "cuda:0";
  Result<EnginePointer> engine = Engine::open(options, test::noVariable);
  ASSERT_FALSE(engine.isOk());
  EXPECT_EQ(engine.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(engine.status().error().hint.find("cpu"), std::string::npos);
  // The caller did not ask for a GPU: the CPU serves, and the description says why.
  options.device = "";
  auto fallback = open();
  EXPECT_FALSE(fallback->device().isGpu());
  EXPECT_NE(fallback->describe().find("no CUDA driver"), std::string::npos);
}

TEST_F(Trouble, UnusableStoredKernelsAreAMissWithAReason) {
  const struct {
    test::KernelText text;
    const char *reason;
  } rows[] = {{{.templateName = "other_target", .target = "sm_90a"}, "target"},
              {{.templateName = "other_type", .dtype = "fp16"}, "dtype"},
              {{.templateName = "unknown_view", .params = "param view gates bf16 3\n"}, "gates"},
              {{.templateName = "wrong_rank", .params = "param view q bf16 2\n"}, "rank"},
              {{.templateName = "unknown_number", .params = "param i32 moon\n"}, "moon"},
              {{.templateName = "unknown_grid", .grid = "moons ; 1 ; 1"}, "moons"},
              {{.templateName = "huge_grid", .grid = "max_seqlen_q * 2147483647 ; 1 ; 1"}, "grid.x"}};
  for (const auto &row : rows) {
    store(row.text);
    log.clear();
    auto engine = open();
    Status status = planStatus(*engine);
    ASSERT_FALSE(status.isOk()) << row.text.templateName;
    EXPECT_EQ(status.code(), ErrorCode::kCacheMiss);
    EXPECT_NE(status.error().message.find(row.reason), std::string::npos) << status.toString();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_NE(log[0].find(row.reason), std::string::npos) << log[0];
  }
}

TEST_F(Trouble, AForcedVariantPassesOverTheStoredChoice) {
  store({.templateName = "attention"});
  options.forceVariant = "row_attention";
  auto engine = open();
  Status status = planStatus(*engine);
  EXPECT_EQ(status.code(), ErrorCode::kCacheMiss);
  EXPECT_NE(status.error().message.find("forced is row_attention"), std::string::npos) << status.toString();
  options.forceVariant = "attention";
  EXPECT_TRUE(planStatus(*open()).isOk());
}

TEST_F(Trouble, AChoiceOfOneTemplateFolderDoesNotServeAnother) {
  store();
  folder.write("x.tile", "kernel x\n");
  options.templateDir = folder.path();
  EXPECT_EQ(planStatus(*open()).code(), ErrorCode::kCacheMiss);
}

TEST_F(Trouble, ADamagedCacheNeverFailsAPlan) {
  store();
  // The middle of the file: pages of the tables.
  std::fstream file(cache, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(0, std::ios::end);
  auto size = static_cast<long>(file.tellp());
  std::string noise(static_cast<size_t>(size / 2), '\x5a');
  file.seekp(size / 4);
  file.write(noise.data(), static_cast<std::streamsize>(noise.size()));
  file.close();
  auto engine = open();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(planStatus(*engine).code(), ErrorCode::kCacheMiss) << "a miss, as an empty cache";
  ASSERT_EQ(log.size(), 1u) << "warned once";
  EXPECT_NE(log[0].find("damaged"), std::string::npos) << log[0];
}

TEST_F(Trouble, ADamagedRowIsAMissAndWarnedAboutOnce) {
  store();
  // One byte of the stored manifest, which the digest covers; its text is in the file as it is.
  std::fstream file(cache, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t at = bytes.find("entry +0");
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at) + 7);
  file.put('1');
  file.close();
  auto engine = open();
  EXPECT_EQ(planStatus(*engine).code(), ErrorCode::kCacheMiss);
  EXPECT_EQ(planStatus(*engine).code(), ErrorCode::kCacheMiss);
  EXPECT_EQ(engine->cacheCounters().damagedRows, 2u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("damaged rows"), std::string::npos) << log[0];
}

TEST_F(Trouble, AFileThatIsNoDatabaseNeverFailsAnEngine) {
  test::writeFile(cache, std::string(10000, 'x'));
  auto engine = open();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(planStatus(*engine).code(), ErrorCode::kCacheMiss);
  EXPECT_EQ(planStatus(*engine).code(), ErrorCode::kCacheMiss);
  ASSERT_EQ(log.size(), 1u) << "warned once";
  EXPECT_NE(log[0].find("no kernel database"), std::string::npos) << log[0];
  EXPECT_EQ(std::filesystem::file_size(cache), 10000u) << "left alone";
  EXPECT_FALSE(std::filesystem::exists(cache + ".damaged-1"));
}

TEST_F(Trouble, ExplainingAndDescribingMakeAndRenameNothing) {
  options.cachePath = folder.file("below/kernels.db");
  auto engine = open();
  ASSERT_NE(engine, nullptr);
  (void)engine->describe();
  EXPECT_TRUE(engine->explain(spec, maxima));
  engine.reset();
  EXPECT_FALSE(std::filesystem::exists(folder.file("below")));
  EXPECT_EQ(log.size(), 0u);

  options.cachePath = cache;
  std::string damaged(5000, 'x');
  damaged.replace(0, 16, "SQLite format 3", 16);
  damaged.replace(60, 4, std::string("\0\0\0\1", 4)); // a schema that is known
  damaged.replace(68, 4, "NSAK");
  test::writeFile(cache, damaged);
  engine = open();
  EXPECT_NE(engine->describe().find("damaged"), std::string::npos);
  EXPECT_TRUE(engine->explain(spec, maxima));
  EXPECT_EQ(log.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(cache + ".damaged-1"));
  EXPECT_EQ(planStatus(*engine).code(), ErrorCode::kCacheMiss);
  EXPECT_TRUE(std::filesystem::exists(cache + ".damaged-1")) << "a plan may store, so it repairs";
}

// An option or variable that names such a place is refused (option_paths_test.cpp). The default place is not named.
TEST_F(Trouble, AnImpossibleDefaultFolderNeverFailsAnEngine) {
  options.cachePath = "";
  const std::string home = folder.write("file", "not a folder") + "/below";
  Result<EnginePointer> opened =
      Engine::open(options, [&](const char *name) { return name == std::string("HOME") ? home.c_str() : nullptr; });
  ASSERT_TRUE(opened.isOk()) << opened.status().toString();
  const EnginePointer engine = std::move(*opened);
  EXPECT_NE(engine->describe().find("Not a directory"), std::string::npos) << engine->describe();
  EXPECT_EQ(planStatus(*engine).code(), ErrorCode::kCacheMiss);
  EXPECT_EQ(log.size(), 1u);
  EXPECT_NE(engine->describe().find("\"trouble\""), std::string::npos);
}

// Permission bits do not bind root: a child gives it up, and its exit code says which expectation failed.
TEST_F(Trouble, AReadOnlyCacheServesAndIsWarnedAboutOnce) {
  store();
  chmod(cache.c_str(), 0444);
  chmod(folder.path().c_str(), 0555);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
      _exit(77);
    auto engine = open();
    if (!engine || !planStatus(*engine).isOk())
      _exit(1);
    if (log.size() != 1 || log[0].find("cannot be written") == std::string::npos)
      _exit(2);
    KernelCache another({.path = cache}, Logger(options.log, LogLevel::kWarning));
    StoredKernel kernel{"content", test::manifestOf({}, spec), test::countingCode()};
    if (another.put(kernel, nullptr).isOk())
      _exit(3);
    _exit(log.size() == 2 ? 0 : 4); // each opening has warned, the put has not
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  chmod(folder.path().c_str(), 0700);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "this root cannot become another user";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A fork closes the file, and when it is opened anew it is something else: as when it was so from the beginning.
TEST_F(Trouble, AFileThatIsLostAtAForkIsWarnedAboutOnce) {
  store();
  KernelCache kernels({.path = cache}, Logger(options.log, LogLevel::kWarning));
  const std::string problem = Problem::make(spec, maxima).key();
  EXPECT_TRUE(kernels.find(problem, test::cpuDeviceKey()).has_value());
  EXPECT_EQ(kernels.trouble(), "");
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  test::writeFile(cache, std::string(10000, 'x'));
  EXPECT_FALSE(kernels.find(problem, test::cpuDeviceKey()).has_value());
  Status status = kernels.put({"content", test::manifestOf({}, spec), test::countingCode()}, nullptr);
  EXPECT_EQ(status.code(), ErrorCode::kIoError) << "it will not be there for the next process";
  EXPECT_NE(status.error().message.find("no kernel database"), std::string::npos) << status.toString();
  EXPECT_EQ(kernels.trouble(), status.error().message);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("no kernel database"), std::string::npos) << log[0];
}

TEST_F(Trouble, ExplainUnderPolicyFailOpensNoCompiler) {
  auto engine = open();
  Result<std::string> text = engine->explain(spec, maxima);
  ASSERT_TRUE(text.isOk());
  EXPECT_NE(text->find("fail with a cache miss"), std::string::npos) << *text;
  EXPECT_EQ(text->find(noCompiler), std::string::npos) << "it was looked for: " << *text;
}

TEST_F(Trouble, ExplainSaysWhatIsStoredAndWhyNothingElseIsPossible) {
  store();
  options.missPolicy = MissPolicy::kDefault;
  auto engine = open();
  Result<std::string> text = engine->explain(spec, maxima);
  ASSERT_TRUE(text.isOk());
  for (const std::string &part : {std::string("run what the database holds"), std::string("counting"), noCompiler})
    EXPECT_NE(text->find(part), std::string::npos) << *text;
  EXPECT_EQ(engine->counters().kernelsLoaded, 0u);
}

} // namespace
