// What a run tells of a mutant: all that can come of one, on the real templates and the real tests.
#include "tests/mutation/child_process.h"
#include "tests/mutation/mutant_run.h"
#include "tools/support/scratch_folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>

namespace nsa::mutation {
namespace {

const std::string kCpuTests = ownFolder() + "/nsa_cpu_attention_test";
const TestProgram kCpu = {.path = kCpuTests, .limitSeconds = 200};
constexpr std::string_view kTests = "Types/LargeGateLogits.*/fp32";

Mutant changed(std::string_view before, std::string_view after, std::string_view file = "tile/library/gates.tile") {
  return {.name = "tried", .operators = "combine", .file = file, .before = before, .after = after, .tests = kTests};
}
const Mutant kWrong = changed("(x - max(x) over branch)", "x");
const Mutant kSame = changed("(x - max(x) over branch)", "(-(max(x) over branch) + x)");

Outcome outcomeOf(const Mutant &mutant, const TestProgram &program = kCpu) {
  const Result<Outcome> outcome = runMutant(mutant, program);
  EXPECT_TRUE(outcome) << outcome.status().toString();
  return outcome ? *outcome : Outcome();
}

// A crash or a hang is noticed only where the table says that it may come of the change.
void checkEnd(Mutant mutant, const TestProgram &program, bool Mutant::*may, Verdict foreseen, Verdict unforeseen) {
  EXPECT_EQ(outcomeOf(mutant, program).verdict, unforeseen);
  EXPECT_FALSE(isExpected(unforeseen));
  mutant.*may = true;
  const Outcome outcome = outcomeOf(mutant, program);
  EXPECT_EQ(outcome.verdict, foreseen) << outcome.detail;
  EXPECT_TRUE(isExpected(foreseen));
  mutant.equivalent = "Nothing can be told.";
  EXPECT_EQ(outcomeOf(mutant, program).verdict, Verdict::kNotEquivalent);
}

TEST(MutantRun, AWrongResultIsKilledByItsTest) {
  const Outcome outcome = outcomeOf(kWrong);
  EXPECT_EQ(outcome.verdict, Verdict::kKilled) << outcome.detail;
  EXPECT_EQ(outcome.tests, 1);
  EXPECT_EQ(outcome.failed, 1);
  EXPECT_EQ(outcome.detail, "Types/LargeGateLogits.NeitherOverflowNorVanish/fp32");
}

TEST(MutantRun, WhatNoTestNoticesSurvives) {
  const Outcome outcome = outcomeOf(kSame);
  EXPECT_EQ(outcome.verdict, Verdict::kSurvived) << outcome.detail;
  EXPECT_EQ(outcome.tests, 1);
  EXPECT_FALSE(isExpected(outcome.verdict));
}

TEST(MutantRun, EachFilterMustHaveATestThatFails) {
  const std::string unconcerned = "Types/MaskTraps.ASingleQueryBehindAPrefixSeesWhatItsPositionAllows/bf16";
  Mutant mutant = kWrong;
  for (const std::string &tests : {std::string(kTests) + " " + unconcerned, unconcerned + " " + std::string(kTests)}) {
    mutant.tests = tests;
    const Outcome outcome = outcomeOf(mutant);
    EXPECT_EQ(outcome.verdict, Verdict::kSurvived);
    EXPECT_EQ(outcome.detail, "no test of " + unconcerned + " failed");
  }
  const std::string both = std::string(kTests) + " Types/LargeGateLogits.*/bf16";
  mutant.tests = both;
  const Outcome outcome = outcomeOf(mutant);
  EXPECT_EQ(outcome.verdict, Verdict::kKilled) << outcome.detail;
  EXPECT_EQ(outcome.tests, 2);
  EXPECT_EQ(outcome.failed, 2);
}

TEST(MutantRun, AReasonExplainsASurvivorAndNothingElse) {
  Mutant explained = kSame;
  explained.equivalent = "A difference is a sum with the negated number.";
  const Outcome outcome = outcomeOf(explained);
  EXPECT_EQ(outcome.verdict, Verdict::kEquivalent);
  EXPECT_EQ(outcome.detail, explained.equivalent);
  Mutant mistaken = kWrong;
  mistaken.equivalent = explained.equivalent;
  EXPECT_EQ(outcomeOf(mistaken).verdict, Verdict::kNotEquivalent);
  EXPECT_FALSE(isExpected(Verdict::kNotEquivalent));
}

TEST(MutantRun, ATextThatDoesNotStandThereOnceIsAnError) {
  for (const std::string_view before : {"no such text", "exp2"}) {
    const Result<Outcome> outcome = runMutant(changed(before, "x"), kCpu);
    ASSERT_FALSE(outcome);
    EXPECT_NE(outcome.status().toString().find("must stand once in tile/library/gates.tile, not "), std::string::npos)
        << outcome.status().toString();
  }
  Mutant elsewhere = kWrong;
  elsewhere.file = "tile/none.tile";
  const Result<Outcome> outcome = runMutant(elsewhere, kCpu);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.status().toString().find("tile/none.tile"), std::string::npos);
}

TEST(MutantRun, ATemplateThatTheCompilerRefusesIsNoMutant) {
  const Outcome outcome = outcomeOf(changed(kWrong.before, "nothing_such"));
  EXPECT_EQ(outcome.verdict, Verdict::kNotCompiled);
  EXPECT_NE(outcome.detail.find("compile failed: "), std::string::npos) << outcome.detail;
  EXPECT_FALSE(isExpected(outcome.verdict));
}

TEST(MutantRun, AProgramThatEndsByASignalCrashed) {
  // Results go to heads a gigabyte away.
  const Mutant far =
      changed("kv_head * group + index % group", "kv_head * group + index % group + 100000000", "tile/combine.tile");
  checkEnd(far, kCpu, &Mutant::mayCrash, Verdict::kCrashed, Verdict::kCrashedUnforeseen);
}

TEST(MutantRun, ACrashOfOneFilterIsTheVerdict) {
  const tools::ScratchFolder folder = std::move(*tools::ScratchFolder::make());
  const std::string crashing = folder.file("crashing");
  std::ofstream(crashing) << "#!/bin/sh\ncase \"$*\" in *LargeGateLogits*fp32*) kill -SEGV $$ ;; esac\nexec "
                          << kCpuTests << " \"$@\"\n";
  std::filesystem::permissions(crashing, std::filesystem::perms::owner_all);
  Mutant mutant = kWrong;
  mutant.mayCrash = true;
  const std::string killed = "Types/LargeGateLogits.*/bf16";
  for (const std::string &tests : {std::string(kTests) + " " + killed, killed + " " + std::string(kTests)}) {
    mutant.tests = tests;
    const Outcome outcome = outcomeOf(mutant, {.path = crashing, .limitSeconds = 200});
    EXPECT_EQ(outcome.verdict, Verdict::kCrashed) << outcome.detail;
    EXPECT_EQ(outcome.failed, 1) << "of the other filter";
  }
}

// A survivor that the limit ends looks the same.
TEST(MutantRun, AProgramThatDoesNotEndIsHung) {
  checkEnd(kSame, {.path = kCpuTests, .limitSeconds = 0}, &Mutant::mayHang, Verdict::kHung, Verdict::kHungUnforeseen);
}

TEST(MutantRun, AProgramThatExitsWithoutAReportRanNoTest) {
  Mutant foreseen = kSame;
  foreseen.mayCrash = foreseen.mayHang = true;
  Mutant explained = kSame;
  explained.equivalent = "A difference is a sum with the negated number.";
  for (const Mutant &mutant : {kSame, foreseen, explained}) {
    const Outcome outcome = outcomeOf(mutant, {.path = "/bin/true", .limitSeconds = 200});
    EXPECT_EQ(outcome.verdict, Verdict::kNotRun) << outcome.detail;
    EXPECT_EQ(outcome.detail, "exit status 0 and no report");
  }
}

TEST(MutantRun, WithoutATestNothingWasRun) {
  Mutant untested = kWrong;
  untested.tests = "NoSuchSuite.*";
  const Outcome outcome = outcomeOf(untested);
  EXPECT_EQ(outcome.verdict, Verdict::kNotRun);
  EXPECT_FALSE(isExpected(outcome.verdict));
}

TEST(MutantRun, AProgramThatIsNotThereIsAnError) {
  const Result<Outcome> outcome = runMutant(kWrong, {.path = "/no/such/program", .limitSeconds = 1});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.status().toString().find("/no/such/program cannot be started"), std::string::npos);
}

TEST(MutantRun, TheTemplatesAsTheyArePass) {
  const Result<Outcome> outcome = runUnchanged(kTests, kCpu);
  ASSERT_TRUE(outcome) << outcome.status().toString();
  EXPECT_EQ(outcome->verdict, Verdict::kSurvived) << outcome->detail;
}

// The program's exit status and table.
class MutateProgram : public ::testing::Test {
protected:
  int run(std::vector<std::string> arguments) {
    Child child;
    child.program = NSA_MUTATE;
    child.arguments = std::move(arguments);
    child.log = folder.file("log");
    child.limitSeconds = 250;
    const Result<ChildEnd> end = runChild(child);
    EXPECT_TRUE(end && end->signal == 0);
    std::ifstream file(child.log);
    output = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return end ? end->exitCode : -1;
  }
  tools::ScratchFolder folder = std::move(*tools::ScratchFolder::make());
  std::string output;
};

TEST_F(MutateProgram, ARunEndsWellWhereAllAreNoticed) {
  const std::string json = folder.file("report.json");
  EXPECT_EQ(run({"--filter", "gates-maximum-of-logits", "-j", "2", "--json", json}), 0) << output;
  EXPECT_NE(output.find("1 mutants on cpu: 1 killed; all as they must be"), std::string::npos) << output;
  std::ifstream file(json);
  const nlohmann::json report = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["counts"]["killed"], 1);
  // As every record: what it ran on, of which commit, and when.
  EXPECT_EQ(report["machine"]["device"].value("kind", ""), "cpu");
  for (const char *fact : {"source", "date", "processor", "version"})
    EXPECT_NE(report["machine"].value(fact, ""), "") << fact;
  EXPECT_EQ(report["mutants"][0].value("name", ""), "gates-maximum-of-logits-not-subtracted");
}

TEST_F(MutateProgram, WhatIsNotUnderstoodIsSaid) {
  EXPECT_EQ(run({"--filter", "no-such-mutant"}), 2);
  EXPECT_NE(output.find("no mutant for the device cpu has 'no-such-mutant' in its name"), std::string::npos) << output;
  EXPECT_EQ(run({"--device", "tpu"}), 2);
  EXPECT_EQ(run({"-j", "0"}), 2);
}

} // namespace
} // namespace nsa::mutation
