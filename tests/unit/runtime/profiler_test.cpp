// Ranges for a profiler, with a library in its place that keeps their names. In a process of its own, as one that has
// attached a profiler keeps it.
#include "runtime/engine/engine.h"
#include "runtime/engine/report/profiler_range.h"
#include "tests/harness/scratch.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace nsa;

namespace {

// What a child sees of a plan from the store, a plan from memory and a refused run: the number of the first
// expectation that fails.
int look(const std::string &cache, const Spec &spec, const Maxima &maxima, const char *profiler) {
  EngineOptions options;
  options.device = "cpu";
  options.cachePath = cache;
  options.missPolicy = MissPolicy::kFail;
  options.cpuThreads = 1;
  auto environment = [&](const char *name) {
    return std::string(name) == "NVTX_INJECTION64_PATH" ? profiler : nullptr;
  };
  Result<EnginePointer> engine = Engine::open(options, environment);
  if (!engine)
    return 1;
  Result<PlanPointer> plan = (*engine)->plan(spec, maxima, nullptr), second = (*engine)->plan(spec, maxima, nullptr);
  if (!plan || !second)
    return 2;
  if ((*plan)->run({}, nullptr, 0, nullptr).isOk())
    return 3;
  void *library = profiler ? dlopen(profiler, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (!library)
    return profiler ? 4 : 0;
  auto names = reinterpret_cast<const char *(*)()>(dlsym(library, "fake_profiler_names"));
  auto depth = reinterpret_cast<int (*)()>(dlsym(library, "fake_profiler_depth"));
  if (!names || !depth)
    return 5;
  if (depth() != 0)
    return 6;
  return std::string(names()) == "nsa plan;nsa run;" ? 0 : 7;
}

TEST(Profiler, SeesPlansAndRuns) {
  const test::Scratch folder;
  const std::string cache = folder.file("kernels.db");
  Spec spec;
  spec.queryHeads = spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 8;
  const Maxima maxima{1, 1, 1, 1};
  test::storeKernel(cache, spec, maxima, {.grid = "1 ; 1 ; 1"}, test::countingCode());
  for (const char *profiler : {static_cast<const char *>(NSA_FAKE_PROFILER), static_cast<const char *>(nullptr)}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(30);
      _exit(look(cache, spec, maxima, profiler));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << (profiler ? profiler : "none") << ": " << status;
  }
}

// A path that names nothing, or a library of something else, changes nothing.
TEST(Profiler, WhatIsNoneIsLeftAlone) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    ProfilerRange::attach("libm.so.6");
    const ProfilerRange range("no profiler");
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
