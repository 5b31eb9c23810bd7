// What becomes of a run's folder, which records are no evidence, and when a kernel counts as slower than recorded.
#include "tests/gpu/record/gpu_record.h"
#include "tests/harness/scratch.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace nsa::test {
namespace {

constexpr const char *kPrograms[] = {"nsa_gpu_attention_test", "nsa_hopper_attention_test", "nsa_gpu_device_test"};

constexpr const char *kMaySkip = "of another architecture: attention_sm90 is for sm_90a, not sm_80";

std::string reportOf(int passed, int skipped, int failed) {
  Json tests = Json::array();
  for (int i = 0; i < passed; ++i)
    tests.push_back({{"name", "a"}, {"result", "COMPLETED"}});
  for (int i = 0; i < skipped; ++i)
    tests.push_back({{"name", "b"}, {"result", "SKIPPED"}, {"skip_reason", kMaySkip}});
  for (int i = 0; i < failed; ++i)
    tests.push_back({{"name", "c"}, {"result", "COMPLETED"}, {"failures", {{{"failure", "it"}}}}});
  return Json({{"time", "1.5s"}, {"testsuites", {{{"name", "S"}, {"testsuite", tests}}}}}).dump();
}

RunFacts facts() {
  RunFacts all;
  all.machine = {{"source", "0123456789ab"},
                 {"date", "2026-01-02"},
                 {"driver", "13.0"},
                 {"nvrtc", "13.0"},
                 {"device", {{"kind", "gpu"}, {"target", "sm_90a"}}}};
  all.seed = "7";
  all.seconds = 12;
  return all;
}

class GpuRecord : public ::testing::Test {
protected:
  // A suite of each program, all passed.
  void SetUp() override {
    std::string suites;
    for (int i = 0; i < 3; ++i) {
      suites += std::to_string(i + 1) + " " + kPrograms[i] + " Table/S 0 1\n";
      folder.write(std::to_string(i + 1) + ".json", reportOf(3, 0, 0));
      folder.write(std::to_string(i + 1) + ".log", "========= ERROR SUMMARY: 0 errors\n");
    }
    folder.write("suites", suites);
  }
  Json record(const RunFacts &from = facts()) {
    const Result<Json> made = makeRecord(folder.path(), from);
    EXPECT_TRUE(made.isOk()) << made.status().toString();
    return made ? *made : Json();
  }
  static std::string faults(const Json &record) {
    std::string text;
    for (const std::string &fault : faultsOf(record))
      text += fault + "\n";
    return text;
  }
  Scratch folder;
};

TEST_F(GpuRecord, CountsEverySuite) {
  folder.write("2.json", reportOf(5, 2, 0));
  const Json made = record();
  EXPECT_EQ(faults(made), "");
  EXPECT_EQ(made["seed"], "7");
  EXPECT_EQ(made["seconds"], 12);
  ASSERT_EQ(made["suites"].size(), 3u);
  EXPECT_EQ(made["suites"][1]["program"], "nsa_hopper_attention_test");
  EXPECT_EQ(made["suites"][1]["passed"], 5);
  EXPECT_EQ(made["suites"][1]["skipped"], 2);
  EXPECT_EQ(made["suites"][1]["skips"], Json::parse(R"([{"reason": ")" + std::string(kMaySkip) + R"(", "tests": 2}])"));
  EXPECT_EQ(made["suites"][1]["seconds"], 1.5);
  ASSERT_EQ(made["results"].size(), 3u);
  EXPECT_EQ(made["results"][2]["tests"], "nsa_hopper_attention_test");
  EXPECT_EQ(made["results"][2]["passed"], 5);
}

TEST_F(GpuRecord, PartsOfASuiteAreOneRow) {
  folder.write("suites", folder.read("suites") + "4 nsa_gpu_attention_test Table/S 1 2\n");
  folder.write("1.json", reportOf(2, 1, 0));
  folder.write("4.json", reportOf(4, 2, 0));
  Json made = record();
  EXPECT_EQ(faults(made), "");
  ASSERT_EQ(made["suites"].size(), 3u);
  EXPECT_EQ(made["suites"][0]["passed"], 6);
  EXPECT_EQ(made["suites"][0]["skipped"], 3);
  EXPECT_EQ(made["suites"][0]["skips"], Json::parse(R"([{"reason": ")" + std::string(kMaySkip) + R"(", "tests": 3}])"));
  EXPECT_EQ(made["suites"][0]["seconds"], 3.0);
  EXPECT_EQ(made["results"][0]["suites"], 1);
  folder.write("4.json", "");
  EXPECT_NE(faults(record()).find("nsa_gpu_attention_test Table/S: unfinished 1"), std::string::npos);
  folder.write("4.json", reportOf(3, 0, 1));
  EXPECT_NE(faults(record()).find("nsa_gpu_attention_test Table/S: failed 1"), std::string::npos);
}

TEST_F(GpuRecord, RefusesWhatIsNoEvidence) {
  const Json fine = record();
  const std::pair<const char *, std::function<void(Json &)>> breaks[] = {
      {"had changes that no commit has", [](Json &r) { r["machine"]["source"] = "0123456789ab-dirty"; }},
      {"names no commit", [](Json &r) { r["machine"]["source"] = "release-0.1.0"; }},
      {"machine.driver is missing", [](Json &r) { r["machine"].erase("driver"); }},
      {"machine.nvrtc is missing", [](Json &r) { r["machine"]["nvrtc"] = ""; }},
      {"machine.date is missing", [](Json &r) { r["machine"].erase("date"); }},
      {"machine.device is no GPU", [](Json &r) { r["machine"]["device"]["kind"] = "cpu"; }},
      {"seed is missing", [](Json &r) { r.erase("seed"); }},
      {"nsa_gpu_attention_test Table/S: failed 1", [](Json &r) { r["suites"][0]["failed"] = 1; }},
      {"nsa_gpu_device_test Table/S: no test ran", [](Json &r) { r["suites"][2]["passed"] = 0; }},
      {"nsa_hopper_attention_test: no suite of it is recorded", [](Json &r) { r["suites"].erase(1); }},
      {"suites is empty", [](Json &r) { r["suites"] = Json::array(); }},
  };
  for (const auto &[text, change] : breaks) {
    Json broken = fine;
    change(broken);
    EXPECT_NE(faults(broken).find(text), std::string::npos) << text << " is not among\n" << faults(broken);
  }
}

// A program all of whose tests were skipped shows nothing; on another GPU than its template's that is as it must be.
TEST_F(GpuRecord, AProgramOfWhichNoTestPassedIsNoEvidence) {
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(kPrograms[i]);
    SetUp();
    folder.write(std::to_string(i + 1) + ".json", reportOf(0, 3, 0));
    const std::string told = std::string(kPrograms[i]) + ": no test of it passed";
    EXPECT_NE(faults(record()).find(told), std::string::npos) << faults(record());
    RunFacts elsewhere = facts();
    elsewhere.machine["device"]["target"] = "sm_80";
    EXPECT_EQ(faults(record(elsewhere)).find(told) != std::string::npos, i != 1) << faults(record(elsewhere));
    elsewhere.sanitizer = "racecheck";
    EXPECT_EQ(faults(record(elsewhere)).find(told) != std::string::npos, i == 1) << faults(record(elsewhere));
  }
}

TEST_F(GpuRecord, TellsFailuresAndSuitesThatEndedEarly) {
  folder.write("1.json", reportOf(3, 0, 2));
  EXPECT_NE(faults(record()).find("nsa_gpu_attention_test Table/S: failed 2"), std::string::npos);
  folder.write("1.json", "{ \"tests\": 3, ");
  EXPECT_NE(faults(record()).find("nsa_gpu_attention_test Table/S: unfinished 1"), std::string::npos);
  folder.write("suites", "");
  EXPECT_FALSE(makeRecord(folder.path(), facts()).isOk());
}

TEST_F(GpuRecord, CountsASanitizersErrors) {
  RunFacts sanitized = facts();
  sanitized.sanitizer = "memcheck";
  sanitized.version = "2025.3";
  EXPECT_EQ(faults(record(sanitized)), "");
  EXPECT_EQ(record(sanitized)["sanitizer"]["tool"], "memcheck");
  folder.write("2.log", "NSA\n========= Invalid __global__ read\n========= ERROR SUMMARY: 3 errors\n");
  Json made = record(sanitized);
  EXPECT_EQ(made["suites"][1]["errors"], 3);
  EXPECT_NE(faults(made).find("nsa_hopper_attention_test Table/S: errors 3"), std::string::npos);
  folder.write("2.log", "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n");
  EXPECT_NE(faults(record(sanitized)).find("errors 1"), std::string::npos);
  folder.write("2.log", "the tool was killed\n");
  EXPECT_NE(faults(record(sanitized)).find("unfinished 1"), std::string::npos);
}

// Skipped when this test starts its program once more, and asks for it.
TEST(DISABLED_Skipping, AsItMay) { GTEST_SKIP() << kMaySkip; }
TEST(DISABLED_Skipping, ForWantOfMemory) { GTEST_SKIP() << "out of memory: 3 GB"; }

// What a test's program writes of skipped tests is judged test by test: one that may be skipped excuses no other.
TEST_F(GpuRecord, EachSkippedTestIsJudgedByItsReason) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe"), report = folder.file("2.json");
  const std::string command = "'" + self +
                              "' --any-skip-skips --gtest_also_run_disabled_tests --gtest_filter='DISABLED_Skipping.*' "
                              "--gtest_output='json:" +
                              report + "' >" + folder.file("out");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 77) << readFile(folder.file("out"));
  const Result<SkippedTests> skipped = skippedTests(report);
  ASSERT_TRUE(skipped.isOk()) << skipped.status().toString();
  EXPECT_EQ(skipped->allowed, std::vector{"DISABLED_Skipping.AsItMay: " + std::string(kMaySkip)});
  EXPECT_EQ(skipped->refused, std::vector<std::string>{"DISABLED_Skipping.ForWantOfMemory: out of memory: 3 GB"});
  EXPECT_NE(faults(record()).find("nsa_hopper_attention_test Table/S: a test was skipped: out of memory: 3 GB"),
            std::string::npos)
      << faults(record());
  EXPECT_EQ(skippedTests(folder.file("none")).status().code(), ErrorCode::kIoError);
  Json unexplained = record();
  unexplained["suites"][1].erase("skips");
  EXPECT_NE(faults(unexplained).find("skipped 2, with a reason 0"), std::string::npos) << faults(unexplained);
}

TEST(TorchRecord, SaysWhatIsNoEvidence) {
  const Json whole = Json::parse(R"({"machine": {"source": "0123", "date": "2026-11-28"}, "results": [
    {"part": "whole", "case": "gqa4", "within": true, "repeats_with_other_bits": 0, "replays_with_other_bits": 0}]})");
  EXPECT_EQ(torchFaultsOf(whole), std::vector<std::string>{});
  EXPECT_EQ(torchFaultsOf(Json::object()),
            (std::vector<std::string>{"machine.source is missing", "machine.date is missing", "results is empty"}));
  Json broken = whole;
  broken["results"][0]["within"] = false;
  broken["results"][0]["replays_with_other_bits"] = 3;
  EXPECT_EQ(torchFaultsOf(broken),
            (std::vector<std::string>{"whole: gqa4: beyond a limit", "whole: gqa4: replays_with_other_bits = 3"}));
}

TEST(MutantRecord, AMutantThatNoTestNoticedIsNoEvidence) {
  Json whole = {{"machine", facts().machine},
                {"mutants",
                 {{{"name", "a"}, {"verdict", "killed"}},
                  {{"name", "b"}, {"verdict", "equivalent"}},
                  {{"name", "(no change)"}, {"verdict", "passes"}}}}};
  whole["machine"]["processor"] = "one";
  EXPECT_EQ(mutantFaultsOf(whole), std::vector<std::string>{});
  const std::pair<const char *, std::function<void(Json &)>> breaks[] = {
      {"a: SURVIVED", [](Json &r) { r["mutants"][0]["verdict"] = "SURVIVED"; }},
      {"b: HUNG", [](Json &r) { r["mutants"][1]["verdict"] = "HUNG"; }},
      {"b: other device", [](Json &r) { r["mutants"][1]["verdict"] = "other device"; }},
      {"(no change): killed", [](Json &r) { r["mutants"][2]["verdict"] = "killed"; }},
      {"no tests ran without a change", [](Json &r) { r["mutants"].erase(2); }},
      {"mutants is empty", [](Json &r) { r.erase("mutants"); }},
      {"machine.date is missing", [](Json &r) { r["machine"].erase("date"); }},
      {"machine.source is missing", [](Json &r) { r.erase("machine"); }},
  };
  for (const auto &[text, change] : breaks) {
    Json broken = whole;
    change(broken);
    const std::vector<std::string> told = mutantFaultsOf(broken);
    EXPECT_NE(std::ranges::find(told, text), told.end()) << text << " is not among " << ::testing::PrintToString(told);
  }
}

TEST_F(GpuRecord, ResultsAreFoundByTheDevicesName) {
  const std::string root = NSA_SOURCE_DIR "/bench/results";
  EXPECT_EQ(resultsOf(root, "NVIDIA H200"), root + "/h200");
  EXPECT_EQ(resultsOf(root, "NVIDIA H100 PCIe"), "");
  EXPECT_EQ(resultsOf(folder.file("none"), "NVIDIA H200"), "");
}

// The results of the repository beside themselves, and beside some in which a kernel takes longer.
TEST_F(GpuRecord, AKernelHalfAsFastBesideItsPeerIsTold) {
  const std::string recorded = NSA_SOURCE_DIR "/bench/results/h200";
  for (const auto &[file, field, row] :
       {std::array{"attention_nsa128", "median_ms", "dense"}, {"prefill", "ms_sel", "nsa"}, {"decode", "us_total", ""}})
    for (const auto &[factor, slowerCount] : {std::pair(1.9, 0u), {2.1, 1u}}) {
      SCOPED_TRACE(std::string(file) + ", times " + std::to_string(factor));
      Scratch fresh;
      for (const char *name : {"attention_nsa128", "prefill", "decode"})
        fresh.write(std::string(name) + ".json", readFile(recorded + "/" + name + ".json"));
      Json changed = Json::parse(fresh.read(std::string(file) + ".json"));
      for (Json &result : changed["results"])
        if (result.value("op", "") == row && result.value("implementation", "nsa default") == "nsa default" &&
            result.contains(field) && result[field].is_number())
          result[field] = result[field].get<double>() * factor;
      fresh.write(std::string(file) + ".json", changed.dump());
      std::vector<std::string> lines;
      const Result<std::vector<std::string>> slower = slowerKernels(recorded, fresh.path(), lines);
      ASSERT_TRUE(slower.isOk()) << slower.status().toString();
      EXPECT_EQ(lines.size(), 6u);
      EXPECT_EQ(slower->size(), slowerCount) << ::testing::PrintToString(lines);
    }
  Scratch empty;
  std::vector<std::string> lines;
  EXPECT_EQ(slowerKernels(recorded, empty.path(), lines).status().code(), ErrorCode::kIoError);
}

} // namespace
} // namespace nsa::test
