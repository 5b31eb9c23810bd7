// `nsa tune` of a plan record: exactly the plans of its lines are tuned, and what tuning plans itself is not recorded.
#include "runtime/base/config_text.h"
#include "tests/cpu/program_job.h"
#include "tools/support/engine.h"

#include <filesystem>

namespace nsa::tools {
namespace {

class RecordJob : public ProgramJob {
protected:
  RecordJob() {
    spec.op = Operator::kWindow;
    spec.dtype = DType::kF32;
    spec.queryHeads = 4;
    spec.kvHeads = 2;
    spec.qkDim = 16;
    spec.vDim = 8;
    spec.window = 40;
    combine = spec;
    combine.op = Operator::kCombine;
    combine.gate = Gate::kSigmoid;
  }
  // Of an engine that may make nothing.
  Status planned(const Spec &asked) const {
    EngineSettings settings;
    settings.cachePath = database;
    settings.cachePacks = "none";
    settings.fallbacks = "exact";
    settings.missPolicy = NSA_MISS_FAIL;
    Result<EngineHandle> engine = createEngine(settings);
    return engine ? createPlan(engine->get(), asked, maxima).status() : engine.status();
  }

  Spec spec, combine;
  const Maxima maxima{.batch = 2, .tokensQ = 200, .seqlenQ = 100, .seqlenK = 100};
  const std::string variables = "NSA_CACHE_PACKS=none";
};

TEST_F(RecordJob, ThePlansOfItsLinesAreTuned) {
  const std::string first = planText(spec, maxima), second = planText(combine, maxima);
  const std::string record = scratch.write("plans", first + "\n" + second + "\n" + first + "\n" + second.substr(0, 50));
  const std::string tune = "tune " + record + " --device cpu --cache " + database;
  const auto dryRun = [&] {
    const std::string text = run(tune + " --dry-run --json", 0, variables);
    return nlohmann::json::parse(text, nullptr, false);
  };
  const nlohmann::json before = dryRun();
  EXPECT_EQ(before.value("workload", ""), "plans");
  ASSERT_EQ(before["kernels"].size(), 2u) << before.dump(2);
  EXPECT_EQ(before["kernels"][0].value("for", ""), "4/2x16/8 window fp32 dense 2x100 window");
  EXPECT_EQ(before["kernels"][1].value("for", ""), "4/2x8 combine fp32 dense 2x100 combine");
  EXPECT_EQ(before["devices"][0].value("measure", 0), 2);
  EXPECT_EQ(planned(spec).code(), ErrorCode::kCacheMiss);

  run(tune, 0, variables);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find(record + ":4 was cut off and is passed over: {\"op\""),
            std::string::npos)
      << test::readFile(scratch.file("stderr"));
  EXPECT_EQ(dryRun()["devices"][0].value("stored", 0), 2);
  for (const Spec &each : {spec, combine}) {
    const Status status = planned(each);
    EXPECT_TRUE(status.isOk()) << status.toString();
  }
}

// A program that starts often appends its lines again: the size of the file says nothing of the number of its plans.
TEST_F(RecordJob, ALongRecordOfFewPlansIsRead) {
  const std::string lines = planText(spec, maxima) + "\n" + planText(combine, maxima) + "\n";
  std::string text;
  while (text.size() <= size_t{1} << 24)
    text += lines;
  const std::string record = scratch.write("plans", text);
  const std::string tune = "tune " + record + " --dry-run --json --device cpu --cache " + database;
  EXPECT_EQ(nlohmann::json::parse(run(tune, 0, variables), nullptr, false)["kernels"].size(), 2u);
  test::writeFile(record, lines + "{\"op\":\"" + std::string(100000, 'x') + "\n");
  run(tune, 1, variables);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find(record + ": has a line of more than 65536 bytes"),
            std::string::npos)
      << test::readFile(scratch.file("stderr"));
}

TEST_F(RecordJob, WhatCannotBeReadEndsTheRunBeforeItBegins) {
  const std::string record = scratch.write("plans", planText(spec, maxima) + "\n{\"op\":\"windw\"}\n");
  run("tune " + record + " --device cpu --cache " + database, 1, variables);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find(record + ":2: op = \"windw\": must be one of dense, window"),
            std::string::npos)
      << test::readFile(scratch.file("stderr"));
  EXPECT_FALSE(std::filesystem::exists(database));
}

TEST_F(RecordJob, TuningRecordsNothing) {
  const std::string record = scratch.file("plans"), recording = variables + " NSA_RECORD=" + record;
  const std::string of = " --op window --config '" + configText(spec) + "' --batch 2 --seqlen-k 100 --device cpu";
  run("tune" + of + " --cache " + database, 0, recording);
  EXPECT_FALSE(std::filesystem::exists(record));
  // A verb that runs something is a program like others.
  run("generate --op window --config '" + configText(spec) + "' --batch 2 --seqlen-k 100 --output " +
          scratch.file("in.safetensors"),
      0, recording);
  run("run --op window --config '" + configText(spec) + "' --device cpu --input " + scratch.file("in.safetensors") +
          " --output " + output + " --cache " + database,
      0, recording);
  EXPECT_EQ(test::readFile(record), planText(spec, maxima) + "\n");
}

} // namespace
} // namespace nsa::tools
