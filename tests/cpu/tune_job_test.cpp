// `nsa tune WORKLOAD` doing its work on the CPU with the real compiler: killed at random moments and resumed,
// interrupted, out of budget, with kernels that fail; and what its reports hold.
#include "tests/cpu/tune_job_fixture.h"
#include "tests/harness/seed.h"
#include "tests/harness/xml_check.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <unistd.h>

namespace nsa::tools {
namespace {

using Clock = std::chrono::steady_clock;

// "[3/12] two nsa fp32 dense 1x64 cmp: 0.002 ms, 0.9 of the default, attention key_tile=16 ... (a tie)"
struct Line {
  std::string kernel;
  bool isTie = false;
};
std::vector<Line> linesOf(const std::string &output) {
  static const std::regex kLine(R"(\[\d+/\d+\] ([^:\n]+): [^\n]* of the default, [^\n]*?( \(a tie\))?(\n|$))");
  std::vector<Line> lines;
  for (std::sregex_iterator match(output.begin(), output.end(), kLine), end; match != end; ++match)
    lines.push_back({(*match)[1], (*match)[2].matched});
  return lines;
}

// From "two nsa fp32 dense 1x64 sel" to its problem, as the dry run tells.
std::map<std::string, std::string> problemsOf(const nlohmann::json &plan) {
  std::map<std::string, std::string> problems;
  for (const nlohmann::json &kernel : plan["kernels"])
    problems[kernel.value("for", "")] = kernel.value("problem", "");
  return problems;
}

// Every winner of one table is the other's, or one of the two says of the other's that it may be as fast. How many were
// ties.
int expectSameTable(const std::map<std::string, TuneJobTest::Stored> &first,
                    const std::map<std::string, TuneJobTest::Stored> &second) {
  int ties = 0;
  EXPECT_EQ(first.size(), kKernels);
  EXPECT_EQ(second.size(), kKernels);
  for (const auto &[problem, one] : first) {
    const auto other = second.find(problem);
    if (other == second.end()) {
      ADD_FAILURE() << "not in the other table: " << problem;
      continue;
    }
    const TuneJobTest::Stored &another = other->second;
    ties += !one.tied.empty() || !another.tied.empty();
    EXPECT_TRUE(one.winner == another.winner || one.tied.contains(another.winner) || another.tied.contains(one.winner))
        << problem << "\n  " << one.winner << ", " << one.milliseconds << " ms: " << one.evidence << "\n  "
        << another.winner << ", " << another.milliseconds << " ms: " << another.evidence;
  }
  return ties;
}

TEST_F(TuneJobTest, TunedAgainItIsTheSameTable) {
  const int repeats = test::repeats("NSA_TEST_TUNE_REPEATS", 2);
  const auto begin = Clock::now();
  run(tune({}));
  const std::map<std::string, Stored> reference = storedChoices();
  int ties = 0, different = 0;
  for (int i = 0; i < repeats; ++i) {
    removeDatabase();
    run(tune({}));
    const std::map<std::string, Stored> again = storedChoices();
    ties += expectSameTable(reference, again);
    for (const auto &[problem, stored] : again)
      different += stored.winner != reference.at(problem).winner;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("%d tables of %d kernels against one: %d ties, %d other winners among them; %.2f s a table\n", repeats,
              static_cast<int>(kKernels), ties, different, seconds / (repeats + 1));
}

TEST_F(TuneJobTest, KilledAtAnyMomentAndResumedItIsTheSameTable) {
  const int kills = test::repeats("NSA_TEST_TUNE_KILLS", 6);
  std::mt19937 random(test::freshSeed());

  const nlohmann::json plan = nlohmann::json::parse(run(tune({"--dry-run", "--json"})));
  std::map<std::string, std::string> problems = problemsOf(plan);
  ASSERT_EQ(problems.size(), kKernels);
  const auto begin = Clock::now();
  const std::string whole = run(tune({}));
  const auto runTime = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  EXPECT_EQ(linesOf(whole).size(), kKernels) << whole;
  const std::map<std::string, Stored> reference = storedChoices();
  for (const Line &line : linesOf(whole))
    EXPECT_EQ(line.isTie, !reference.at(problems.at(line.kernel)).tied.empty())
        << "a tie is told and stored: " << line.kernel;

  int killed = 0, tables = 0, ties = 0, lost = 0;
  while (killed < kills && !HasFailure()) {
    removeDatabase();
    std::filesystem::remove(log);
    std::map<std::string, Stored> before;
    for (bool isOver = false; !isOver && !HasFailure();) {
      // Short delays too: while the compiler is loaded, while the file is made.
      const auto delay = std::chrono::microseconds(random() % static_cast<uint64_t>(runTime.count()));
      const pid_t child = start(tune({}));
      if (killed < kills) {
        usleep(static_cast<useconds_t>(delay.count()));
        kill(child, SIGKILL);
      }
      const int code = codeOf(child);
      isOver = code != -SIGKILL;
      if (isOver)
        EXPECT_EQ(code, 0) << test::readFile(log);
      killed += !isOver;
      const std::string output = test::readFile(log);
      expectWholeFile();
      if (!std::filesystem::exists(database))
        continue;
      const std::map<std::string, Stored> after = storedChoices();
      test::writeFile(log, output); // the listing took its place
      for (const auto &[problem, stored] : before)
        EXPECT_EQ(after.at(problem).winner, stored.winner) << "measured again, or lost: " << problem;
      before = after;
      EXPECT_LE(linesOf(output).size(), after.size()) << "what was told is stored";
    }
    std::set<std::string> told;
    for (const Line &line : linesOf(test::readFile(log)))
      EXPECT_TRUE(told.insert(problems.at(line.kernel)).second) << "measured twice: " << line.kernel;
    ++tables;
    lost += static_cast<int>(kKernels - told.size()); // a kill between storing and telling loses the line
    ties += expectSameTable(reference, before);
    EXPECT_NE(run(tune({})).find("Nothing was measured"), std::string::npos);
  }
  std::printf("%d kills, %d tables of %d kernels: %d ties; %d without a report; a run takes %.1f s, all took %.0f s\n",
              killed, tables, static_cast<int>(kKernels), ties, lost, std::chrono::duration<double>(runTime).count(),
              std::chrono::duration<double>(Clock::now() - begin).count());
}

TEST_F(TuneJobTest, ADryRunTellsWhatIsLeft) {
  const nlohmann::json cold = nlohmann::json::parse(run(tune({"--dry-run", "--json"})));
  ASSERT_EQ(cold["devices"].size(), 1u);
  EXPECT_EQ(cold["devices"][0].value("measure", 0), int{kKernels});
  EXPECT_EQ(cold["devices"][0].value("families", 0), 7);
  EXPECT_FALSE(std::filesystem::exists(database)) << "it writes nothing";
  const std::string text = run(tune({"--dry-run", "--budget", "7"}));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), int{kKernels} + 1) << text;
  EXPECT_TRUE(text.starts_with("measure  compress ")) << text;
  EXPECT_NE(text.find(": 12 to measure in 7 families, 0 to compile alone, 0 stored; about "), std::string::npos)
      << text;
  EXPECT_NE(text.find(", at most 7 s"), std::string::npos) << text;

  run(tune({}));
  const std::string warm = run(tune({"--dry-run"}));
  EXPECT_NE(warm.find(": 0 to measure in 0 families, 0 to compile alone, 12 stored; about 0 s"), std::string::npos)
      << warm;
  const std::string target = run(tune({"--dry-run", "--target", "cpu"}));
  EXPECT_NE(target.find("12 stored"), std::string::npos) << "found by its kernels' architecture: " << target;
  const std::string other = run(tune({"--dry-run", "--target", "sm_90a"}));
  EXPECT_NE(other.find("sm_90a templates="), std::string::npos) << other;
  EXPECT_NE(other.find("12 to measure"), std::string::npos) << other;
  EXPECT_NE(run(tune({"--dry-run", "--again"})).find("12 to measure"), std::string::npos);
}

TEST_F(TuneJobTest, ReportsHoldWhatTheRunDid) {
  const std::string json = scratch.file("report.json"), html = scratch.file("report.html");
  run(tune({"--json=" + json, "--report", html}));
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  EXPECT_EQ(report["counts"].value("tuned", 0), int{kKernels});
  for (const nlohmann::json &kernel : report["kernels"]) {
    EXPECT_EQ(kernel.value("status", ""), "tuned");
    EXPECT_GT(kernel["winner"].value("milliseconds", 0.0), 0);
    EXPECT_GT(kernel["default"].value("milliseconds", 0.0), 0);
    EXPECT_GT(kernel["timed"].value("bytes", 0.0), 0);
  }
  EXPECT_GT(report["devices"][0]["roofs"]["fp32"].value("tflops", 0.0), 0);
  const std::string page = test::readFile(html);
  EXPECT_EQ(test::XmlCheck::problemOf(page), "");
  EXPECT_NE(page.find("Roofline"), std::string::npos);

  // A run that measures nothing shows the same numbers, from the database.
  run(tune({"--json=" + json, "--report", html}));
  const nlohmann::json again = nlohmann::json::parse(test::readFile(json));
  EXPECT_EQ(again["counts"].value("stored", 0), int{kKernels});
  for (size_t i = 0; i < kKernels; ++i)
    for (const char *name : {"problem", "winner", "default", "templates", "candidates", "timed"})
      EXPECT_EQ(again["kernels"][i][name], report["kernels"][i][name]) << name;
  EXPECT_EQ(test::XmlCheck::problemOf(test::readFile(html)), "");

  const std::string forced = run(tune({"--again"}));
  EXPECT_EQ(linesOf(forced).size(), kKernels) << forced;
}

// What a pack holds, measured by this compiler on this model, needs no second measurement, wherever the database is.
TEST_F(TuneJobTest, WhatAPackHoldsIsNotMeasuredAgain) {
  run(tune({}));
  const std::string pack = scratch.file("tiny.nsapack");
  run({NSA_PROGRAM, "cache", "export", pack, "--cache", database});
  removeDatabase();
  packs = pack;
  EXPECT_NE(run(tune({"--dry-run"})).find("0 to measure in 0 families, 0 to compile alone, 12 stored"),
            std::string::npos);
  const std::string json = scratch.file("report.json");
  const std::string output = run(tune({"--json=" + json}));
  EXPECT_NE(output.find("Nothing was measured"), std::string::npos) << output;
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  EXPECT_EQ(report["counts"].value("stored", 0), int{kKernels});
  for (const nlohmann::json &kernel : report["kernels"])
    EXPECT_GT(kernel["winner"].value("milliseconds", 0.0), 0) << "the pack's evidence: " << kernel.dump();
  EXPECT_FALSE(std::filesystem::exists(database)) << "nothing is stored, so it is not made";

  // A pack of another revision of the templates is none of this device's, and one that is broken says so.
  templates.replace("tile/sel.tile", "walks the blocks", "walks all blocks");
  EXPECT_NE(run(tune({"--dry-run"})).find("12 to measure"), std::string::npos);
  packs = scratch.write("broken.nsapack", "not a pack");
  const std::string broken = run(tune({"--dry-run"}));
  EXPECT_NE(broken.find("12 to measure"), std::string::npos) << broken;
  EXPECT_NE(broken.find("broken.nsapack"), std::string::npos) << "why it does not count: " << broken;
}

// An exhaustive search leaves no candidate out. The result of a usual search does not replace that of an exhaustive
// one, but the other way round it does.
TEST_F(TuneJobTest, AnExhaustiveSearchIsMadeOnce) {
  run(tune({}));
  EXPECT_NE(run(tune({"--dry-run", "--exhaustive"})).find("12 to measure"), std::string::npos);
  const std::string json = scratch.file("report.json");
  run(tune({"--exhaustive", "--json=" + json}));
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  EXPECT_EQ(report["counts"].value("tuned", 0), int{kKernels});
  EXPECT_TRUE(report.value("exhaustive", false));
  for (const nlohmann::json &kernel : report["kernels"]) {
    EXPECT_FALSE(kernel.value("budget_exhausted", true));
    for (const nlohmann::json &candidate : kernel["evidence"]) {
      EXPECT_NE(candidate.value("outcome", ""), "pruned") << candidate.dump();
      if (candidate.value("milliseconds", 0.0) > 0 && kernel["candidates"].value("measured", 0) > 1)
        EXPECT_EQ(candidate.value("rounds", 0), 3 + 9 + 27) << candidate.dump();
    }
  }
  EXPECT_NE(run(tune({"--exhaustive"})).find("Nothing was measured"), std::string::npos);
  EXPECT_NE(run(tune({})).find("Nothing was measured"), std::string::npos);
}

// One command, one budget, each kernel once, and a word on each workload.
TEST_F(TuneJobTest, SeveralWorkloadsShareWhatBothNeed) {
  nlohmann::json more = nlohmann::json::parse(test::readFile(workload));
  more["name"] = "more";
  more["prefill"]["lengths"] = {128, 256};
  const std::string other = scratch.write("more.json", more.dump()), json = scratch.file("report.json");
  const std::string plan = run(tune({other, "--dry-run", "--budget", "9"}));
  EXPECT_NE(plan.find("\ntiny: 12 kernels, 6 of them shared with others\nmore: 12 kernels, 6 of them shared"),
            std::string::npos)
      << plan;
  EXPECT_NE(plan.find(": 18 to measure in 7 families, 0 to compile alone, 0 stored"), std::string::npos) << plan;
  EXPECT_NE(plan.find(", at most 9 s"), std::string::npos) << plan;
  const std::string output = run(tune({other, "--json=" + json}));
  EXPECT_NE(output.find("\ntiny: 12 kernels: 12 tuned; 6 shared with others\nmore: 12 kernels: 12 tuned; 6 shared"),
            std::string::npos)
      << output;
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  EXPECT_EQ(report["kernels"].size(), 18u);
  EXPECT_EQ(report["workloads"][1].value("name", ""), "more");
  EXPECT_EQ(report["workloads"][1]["counts"].value("tuned", 0), 12);
  EXPECT_EQ(report["kernels"][6]["workloads"], (nlohmann::json{"tiny", "more"}));
  EXPECT_NE(run({NSA_PROGRAM, "tune", other, "--cache", database}).find("12 kernels: 12 stored before"),
            std::string::npos);
  const std::string twice = run(tune({workload}), 1);
  EXPECT_NE(twice.find("must differ in its name, tiny, from"), std::string::npos) << twice;
}

// Told with its times, stored, and taken from there until kernels are new; no plan ever looks at it.
TEST_F(TuneJobTest, TheCrossoverWithDenseAttentionIsMeasuredOnce) {
  nlohmann::json asking = nlohmann::json::parse(test::readFile(workload));
  asking["prefill"]["crossover"] = true;
  const std::string path = scratch.write("asking.json", asking.dump()), json = scratch.file("report.json"),
                    html = scratch.file("report.html");
  const std::vector<std::string> command = {NSA_PROGRAM, "tune",           path,       "--cache",
                                            database,    "--json=" + json, "--report", html};
  EXPECT_NE(run({NSA_PROGRAM, "tune", path, "--cache", database, "--dry-run"})
                .find("\nmeasure  crossover with dense attention  (two fp32 1x64 to 1x128)\n"),
            std::string::npos);
  const std::string first = run(command);
  EXPECT_NE(first.find("\nCrossover with dense attention, two fp32: "), std::string::npos) << first;
  const nlohmann::json measured = nlohmann::json::parse(test::readFile(json))["crossovers"][0];
  EXPECT_EQ(measured.value("status", ""), "measured");
  ASSERT_EQ(measured["times"].size(), 2u) << measured.dump();
  for (const nlohmann::json &at : measured["times"]) {
    EXPECT_GT(at.value("nsa_ms", 0.0), 0);
    EXPECT_GT(at.value("dense_ms", 0.0), 0);
  }
  if (measured["from"].is_null())
    EXPECT_EQ(measured.value("text", ""), "never within the lengths measured, up to 128 tokens");
  else
    EXPECT_TRUE(measured["from"] == 64 || measured["from"] == 128) << measured.dump();
  EXPECT_EQ(test::XmlCheck::problemOf(test::readFile(html)), "");
  EXPECT_NE(test::readFile(html).find("Against dense attention"), std::string::npos);

  const std::string second = run(command);
  EXPECT_NE(second.find("Nothing was measured"), std::string::npos) << second;
  const nlohmann::json stored = nlohmann::json::parse(test::readFile(json))["crossovers"][0];
  EXPECT_EQ(stored.value("status", ""), "stored");
  EXPECT_EQ(stored["times"], measured["times"]);
  EXPECT_EQ(stored["text"], measured["text"]);
  run({NSA_PROGRAM, "tune", path, "--cache", database, "--again", "--json=" + json});
  EXPECT_EQ(nlohmann::json::parse(test::readFile(json))["crossovers"][0].value("status", ""), "measured");
}

TEST_F(TuneJobTest, AllAreTheReadyMadeWorkloads) {
  const nlohmann::json plan = nlohmann::json::parse(
      run({NSA_PROGRAM, "tune", "all", "--dry-run", "--target", "sm_90a", "--json", "--cache", database}));
  ASSERT_EQ(plan["workloads"].size(), 8u);
  size_t named = 0;
  for (const nlohmann::json &each : plan["workloads"]) {
    named += each.value("kernels", size_t{0});
    EXPECT_GT(each.value("kernels", 0), 0) << each.dump();
  }
  EXPECT_LT(plan["kernels"].size(), named) << "kernels that several need are there once";
}

TEST_F(TuneJobTest, SigintEndsAfterTheKernelInHand) {
  const std::string json = scratch.file("report.json");
  std::filesystem::remove(log);
  const pid_t child = start(tune({"--json=" + json}));
  while (linesOf(test::readFile(log)).empty() && kill(child, 0) == 0)
    usleep(2000);
  kill(child, SIGINT);
  const int code = codeOf(child);
  const std::string output = test::readFile(log);
  EXPECT_EQ(code, 3) << output;
  EXPECT_NE(output.find("Interrupted: the same command goes on from here."), std::string::npos) << output;
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  EXPECT_TRUE(report.value("interrupted", false));
  const int tuned = report["counts"].value("tuned", 0);
  EXPECT_GT(tuned, 0);
  EXPECT_EQ(report["counts"].value("left", 0), int{kKernels} - tuned);
  EXPECT_EQ(storedChoices().size(), static_cast<size_t>(tuned));
  EXPECT_NE(run(tune({})).find(std::to_string(kKernels - static_cast<size_t>(tuned)) + " tuned"), std::string::npos);
}

TEST_F(TuneJobTest, ABudgetLeavesTheRestForTheNextRun) {
  const std::string json = scratch.file("report.json");
  const std::string none = run(tune({"--kernel-budget", "1e-9", "--json=" + json}), 3);
  EXPECT_NE(none.find("12 kernels: 12 left"), std::string::npos) << none;
  const std::map<std::string, Stored> defaults = storedChoices(/*tuned=*/false);
  EXPECT_EQ(defaults.size(), size_t{kKernels}) << "a default that ran is kept";
  for (const auto &[problem, stored] : defaults)
    EXPECT_EQ(stored.winner, "") << problem << ": what was not measured has not won";
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  for (const nlohmann::json &kernel : report["kernels"])
    EXPECT_FALSE(kernel.contains("winner")) << kernel.dump();
  const std::string output = run(tune({"--budget", "0.05"}), 3);
  EXPECT_NE(output.find("The budget is spent: the same command goes on from here."), std::string::npos) << output;
  EXPECT_LT(linesOf(output).size(), kKernels);
  run(tune({}));
  EXPECT_NE(run(tune({})).find("12 stored before"), std::string::npos)
      << "kernels that the short run could not measure were measured";
}

TEST_F(TuneJobTest, AKernelThatFailsIsNamedAndTheOthersAreTuned) {
  templates.replace("tile/sel.tile", "load q[place]", "load nothing[place]");
  const std::string json = scratch.file("report.json");
  const std::string output = run(tune({"--json=" + json}), 1);
  EXPECT_NE(output.find("1 of 12 kernels failed:\n  sel dtype=fp32"), std::string::npos) << output;
  EXPECT_NE(output.find("12 kernels: 11 tuned, 1 failed"), std::string::npos) << output;
  const nlohmann::json report = nlohmann::json::parse(test::readFile(json));
  EXPECT_EQ(report["counts"].value("failed", 0), 1);
  EXPECT_EQ(storedChoices().size(), kKernels - 1);
}

TEST_F(TuneJobTest, WhereNothingIsKeptNothingIsMeasured) {
  const std::string file = scratch.write("file", "no database, so it is left alone");
  const std::string output = run({NSA_PROGRAM, "tune", workload, "--cache", file}, 1);
  EXPECT_NE(output.find("what is made would not be kept: "), std::string::npos) << output;
  EXPECT_EQ(output.find("[1/12]"), std::string::npos) << output;
}

TEST_F(TuneJobTest, ADeviceStandsThereOnce) {
  const std::string output = run(tune({"--device", "cpu,cpu"}), 1);
  EXPECT_NE(output.find("--device = cpu: must stand there once"), std::string::npos) << output;
  EXPECT_NE(run(tune({"--device", "cpu,gpu"}), 1).find("must be cpu or cuda:N"), std::string::npos);
}

} // namespace
} // namespace nsa::tools
