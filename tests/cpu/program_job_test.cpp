// The command line doing its work on the CPU device: a cold and a warm run over the trained model's tensors, every
// stage of `compile`, tuning, and what the database then shows.
#include "tests/harness/scratch.h"
#include "tools/nsa/safetensors.h"

#include <nlohmann/json.hpp>
#include <set>
#include <sys/wait.h>

namespace nsa::tools {
namespace {

class ProgramJob : public ::testing::Test {
protected:
  // Standard output; the exit code must be the expected one.
  std::string run(const std::string &arguments, int expected = 0) {
    const std::string command = "env -u NSA_MISS -u NSA_CACHE_DIR '" NSA_PROGRAM "' " + arguments + " >" +
                                scratch.file("stdout") + " 2>" + scratch.file("stderr");
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == expected) << command << "\n"
                                                                      << test::readFile(scratch.file("stderr"));
    return test::readFile(scratch.file("stdout"));
  }
  nlohmann::json runJson(const std::string &arguments) {
    const std::string text = run(arguments + " --json");
    nlohmann::json report = nlohmann::json::parse(text, nullptr, false);
    EXPECT_TRUE(report.is_object()) << text;
    return report;
  }

  // Every output has its verdict, and a good one.
  static void expectChecked(const nlohmann::json &report, const std::set<std::string> &outputs) {
    std::set<std::string> checked;
    for (const nlohmann::json &check : report["checks"]) {
      checked.insert(check.value("output", ""));
      EXPECT_TRUE(check.value("within", false)) << check.dump(2);
    }
    EXPECT_EQ(checked, outputs) << report.dump(2);
  }

  test::Scratch scratch;
  const std::string data = NSA_TEST_DATA;
  const std::string input = data + "/nsa_layer3_2048_group0.safetensors";
  const std::string output = scratch.file("out.safetensors");
  const std::string database = scratch.file("kernels.db");
  const std::string job = "run --op window --config " + data + "/window.json --input " + input + " --output " + output +
                          " --device cpu --cache " + database + " --check --all-outputs";
};

TEST_F(ProgramJob, TheSecondProcessFindsWhatTheFirstStored) {
  const nlohmann::json cold = runJson(job);
  EXPECT_EQ(cold["plan"].value("source", ""), "compiled");
  EXPECT_EQ(cold["plan"]["launches"][0].value("template", ""), "attention");
  EXPECT_GT(cold["milliseconds"].value("compile", 0.0), 0.0);
  EXPECT_TRUE(cold.value("compiler_mapped", false));
  expectChecked(cold, {"out", "reads"});
  const std::string first = test::readFile(output);

  const nlohmann::json warm = runJson(job + " --miss fail");
  EXPECT_EQ(warm["plan"].value("source", ""), "database");
  EXPECT_EQ(warm["milliseconds"].value("compile", 1.0), 0.0);
  EXPECT_FALSE(warm.value("compiler_mapped", true));
  EXPECT_EQ(test::readFile(output), first) << "the same kernel gave other bits";

  const Result<SafetensorsFile> file = SafetensorsFile::open(output);
  ASSERT_TRUE(file) << file.status().toString();
  const Result<HostTensor> out = file->read("out"), lse = file->read("lse"), reads = file->read("reads");
  ASSERT_TRUE(out && lse && reads);
  EXPECT_EQ(reads->shape, (std::vector<int64_t>{2048, 1}));
  EXPECT_EQ(out->dtype, DType::kBf16);
  EXPECT_EQ(out->shape, (std::vector<int64_t>{2048, 8, 64}));
  EXPECT_EQ(lse->dtype, DType::kF32);
  EXPECT_EQ(lse->shape, (std::vector<int64_t>{2048, 8}));
}

TEST_F(ProgramJob, TheHumanReportNamesKernelTimesAndError) {
  const std::string text = run(job);
  for (const char *part :
       {"kernel   window  attention  ", "from compiled", "compile ", "run ",
        "check    out         within the contract: relative RMS", "check    reads       within the contract"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(ProgramJob, OnlyWhatMustBeWrittenIsUnlessAllIsAskedFor) {
  run("run --op window --config " + data + "/window.json --input " + input + " --output " + output +
      " --device cpu --cache " + database);
  const Result<SafetensorsFile> file = SafetensorsFile::open(output);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->entries().size(), 1u);
  EXPECT_TRUE(file->contains("out"));
}

TEST_F(ProgramJob, CompileShowsEveryStage) {
  const std::string base = "compile --op window --config " + data + "/window_64.json ";
  EXPECT_NE(run(base + "--target cpu --emit template").find("//! template attention"), std::string::npos);
  EXPECT_NE(run(base + "--target sm_80 --emit tile").find("tile.dot"), std::string::npos);
  EXPECT_NE(run(base + "--target sm_80 --emit scheduled").find("tile.layout"), std::string::npos);
  EXPECT_NE(run(base + "--target sm_90a --emit cuda").find("__global__"), std::string::npos);
  EXPECT_NE(run(base + "--target cpu --emit llvm").find("define"), std::string::npos);
  const std::string image = scratch.file("kernel.image");
  const nlohmann::json report =
      runJson(base + "--target cpu --emit image --output " + image + " --set query_tile=32 --set key_tile=16");
  EXPECT_EQ(test::readFile(image).size(), report.value("bytes", size_t{0}));
  EXPECT_NE(report.value("manifest", "").find("key_tile=16 queries_shared=0 query_tile=32"), std::string::npos)
      << report.dump(2);
  EXPECT_GE(runJson(base + "--target cpu --list")["candidates"].size(), 12u);
}

TEST_F(ProgramJob, TuningIsStoredWithItsEvidence) {
  const std::string spec =
      "--op window --config " + data + "/window_64.json --seqlen-k 256 --device cpu --cache " + database;
  const nlohmann::json report = runJson("tune " + spec + " --tune-budget 5");
  EXPECT_GE(report.value("measured", 0), 4);
  const nlohmann::json listing = runJson("cache list --cache " + database);
  ASSERT_EQ(listing["choices"].size(), 1u);
  EXPECT_TRUE(listing["choices"][0].value("tuned", false));
  const std::string key = listing["choices"][0].value("kernel", "");
  const nlohmann::json shown = runJson("cache show " + key.substr(0, 12) + " --cache " + database);
  EXPECT_EQ(shown.value("key", ""), key);
  EXPECT_EQ(shown["choices"][0]["evidence"].size(), report["candidates"].size());
  const nlohmann::json explained = runJson("explain " + spec);
  EXPECT_EQ(explained["database"].value("content", ""), key);
  EXPECT_TRUE(explained["database"].value("tuned", false));
}

TEST_F(ProgramJob, TheMainJobsTunerHasAChoice) {
  const std::string spec =
      "--op window --config " + data + "/window.json --input " + input + " --device cpu --cache " + database;
  const nlohmann::json report = runJson("tune " + spec + " --tune-budget 60");
  EXPECT_GE(report.value("compiled", 0), 12) << report.dump(2);
  EXPECT_GE(report.value("measured", 0), 4) << report.dump(2);
  const nlohmann::json listing = runJson("cache list --cache " + database);
  ASSERT_EQ(listing["choices"].size(), 1u);
  size_t timed = 0;
  for (const nlohmann::json &measurement : listing["choices"][0]["evidence"])
    timed += measurement.value("milliseconds", 0.0) > 0;
  EXPECT_EQ(timed, report.value("measured", size_t{0})) << "every time that was taken is kept";
}

// A person is not shown one by one what never ran.
TEST_F(ProgramJob, ATableSumsUpWhatWasNotCompiled) {
  const std::string table =
      run("tune --op window --config " + data + "/window_64.json --seqlen-k 64 --device cpu --cache " + database +
          " --tune-budget 0.001");
  EXPECT_NE(table.find("winner "), std::string::npos) << table;
  EXPECT_EQ(table.find("pruned"), std::string::npos) << table;
  EXPECT_NE(table.find(" more were not compiled: out of budget\n"), std::string::npos) << table;
  const nlohmann::json listing = runJson("cache list --cache " + database);
  const std::string shown = run("cache show " + listing["choices"][0].value("kernel", "") + " --cache " + database);
  EXPECT_EQ(shown.find("pruned"), std::string::npos) << shown;
  EXPECT_NE(shown.find(" more were not compiled: out of budget\n"), std::string::npos) << shown;
}

TEST_F(ProgramJob, AWinnerThatCannotBeStoredIsAFailure) {
  scratch.write("file", "not a folder");
  const std::string spec = "tune --op window --config " + data + "/window_64.json --seqlen-k 64 --device cpu" +
                           " --tune-budget 0.001 --cache ";
  EXPECT_NE(run(spec + scratch.file("file") + "/below/kernels.db", 1).find("winner "), std::string::npos);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find("the winner was not stored"), std::string::npos);
  run(spec + ":memory:"); // asked for, so no failure
}

TEST_F(ProgramJob, DoctorFindsAWorkingCpu) {
  const nlohmann::json report = runJson("doctor --cache " + database);
  EXPECT_TRUE(report.value("cpu", false)) << report.dump(2);
}

} // namespace
} // namespace nsa::tools
