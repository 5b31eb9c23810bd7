// `nsa tune WORKLOAD --compile-only`: kernels are compiled for a target whose device is not there.
#include "tests/cpu/tune_job_fixture.h"

#include <filesystem>
#include <string_view>

namespace nsa::tools {
namespace {

TEST_F(TuneJobTest, CompilesWithoutADevice) {
  const std::string output = run(tune({"--compile-only", "--target", "cpu"}));
  EXPECT_NE(output.find("12 kernels: 12 compiled"), std::string::npos) << output;
  const nlohmann::json listing =
      nlohmann::json::parse(run({NSA_PROGRAM, "cache", "list", "--json", "--cache", database}));
  EXPECT_EQ(listing["choices"].size(), kKernels);
  EXPECT_EQ(listing["kernels"].size(), 7u) << "lengths share their kernel";
  for (const nlohmann::json &choice : listing["choices"]) {
    EXPECT_FALSE(choice.value("tuned", true));
    EXPECT_TRUE(choice.value("device", "").starts_with("cpu x86-64-v")) << choice.dump();
  }
  for (const nlohmann::json &kernel : listing["kernels"])
    EXPECT_EQ(kernel.value("target", ""), "cpu");
  // They are the processor's own: an engine that makes nothing has all that it needs.
  EngineSettings settings;
  settings.cachePath = database;
  settings.cachePacks = settings.pinPath = "none";
  settings.fallbacks = "exact";
  settings.missPolicy = NSA_MISS_FAIL;
  settings.templateDir = templates.path();
  Result<EngineHandle> engine = createEngine(settings);
  ASSERT_TRUE(engine) << engine.status().toString();
  Spec spec;
  spec.op = Operator::kNsa;
  spec.dtype = DType::kF32;
  spec.queryHeads = 2;
  spec.kvHeads = 1;
  spec.qkDim = spec.vDim = 16;
  spec.window = 32;
  spec.cmpBlock = 8;
  spec.cmpStride = 4;
  spec.selBlock = 16;
  spec.selCount = 4;
  for (const int64_t tokens : {64, 128}) {
    const Status made = createPlan(engine->get(), spec, {1, tokens, tokens, tokens}).status();
    EXPECT_TRUE(made.isOk()) << made.toString();
  }
  EXPECT_NE(run(tune({"--compile-only", "--target", "cpu"})).find("12 kernels: 12 stored before"), std::string::npos);
  EXPECT_NE(run(tune({"--compile-only", "--target", "cpu", "--again"})).find("12 kernels: 12 compiled"),
            std::string::npos);
}

// NVRTC may be missing, which is then what each kernel fails of.
TEST_F(TuneJobTest, CompilesForAGpuThatIsNotThere) {
  const std::string json = scratch.file("report.json");
  std::filesystem::remove(log);
  const int code = codeOf(start(tune({"--compile-only", "--target", "sm_90a", "--json=" + json})));
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  ASSERT_EQ(report["kernels"].size(), kKernels);
  if (code != 0) {
    for (const nlohmann::json &kernel : report["kernels"])
      ASSERT_NE(kernel.value("error", "").find("NVRTC"), std::string::npos) << kernel.dump(2);
    const char *expected = std::getenv("NSA_EXPECT_NVRTC");
    ASSERT_FALSE(expected && std::string_view(expected) == "1") << report["kernels"][0].dump(2);
    GTEST_SKIP() << report["kernels"][0].value("error", "");
  }
  EXPECT_EQ(report["counts"].value("made", 0), int{kKernels});
  for (const nlohmann::json &kernel : report["kernels"])
    EXPECT_TRUE(kernel.value("device", "").starts_with(kernel.value("target", "") + " templates=")) << kernel.dump(2);
  const nlohmann::json plan = nlohmann::json::parse(run(tune({"--dry-run", "--target", "sm_90a", "--json"})));
  EXPECT_EQ(plan["devices"][0].value("measure", 0), int{kKernels}) << "what was never measured still is to be";
}

} // namespace
} // namespace nsa::tools
