// Where a tuning ends that has no more time, and what it knows then.
#include "tests/unit/autotune/fake_machine.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

TEST(TunerBudget, ATightBudgetStillMeetsEveryTemplate) {
  FakeMachine machine{.trueMs = std::vector<double>(20, 1.0)};
  machine.compileSeconds = 5;
  std::vector<Candidate> candidates = candidatesFor(machine);
  candidates[19].templateName = "row_attention";
  machine.trueMs[19] = 0.5;
  TuneOptions options;
  options.budgetSeconds = 20; // half of it: two compiles
  options.compileThreads = 1;
  Result<TuneReport> report = tune(candidates, machine.callbacks(), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(machine.compiles, 2u);
  EXPECT_EQ(report->winner, 19u);
}

TEST(TunerBudget, SaysWhereTheTimeWent) {
  FakeMachine machine{.trueMs = {1000, 1500}};
  machine.compileSeconds = 3;
  machine.checkSeconds = 2;
  TuneOptions options;
  options.budgetSeconds = 1e6;
  options.compileThreads = 1;
  machine.restartSeconds = 0.001;
  const double begin = machine.seconds;
  const TuneReport report = tuned(machine, options);
  EXPECT_DOUBLE_EQ(report.phases.compile, 6);
  EXPECT_DOUBLE_EQ(report.phases.check, 4);
  ASSERT_GT(report.sessions, 1);
  EXPECT_NEAR(report.phases.restart, 0.001 * (report.sessions - 1), 1e-9);
  EXPECT_NEAR(report.phases.measure, machine.seconds - begin - 10 - report.phases.restart, 1e-9);
}

TEST(TunerBudget, BudgetEndsCompilingButNotTheIncumbent) {
  FakeMachine machine{.trueMs = {1.0, 0.5, 0.4, 0.3}};
  machine.compileSeconds = 10;
  TuneOptions options;
  options.budgetSeconds = 30;
  options.compileThreads = 1;
  TuneReport report = tuned(machine, options);
  EXPECT_TRUE(report.budgetExhausted);
  EXPECT_EQ(machine.compiles, 2u) << "half of the budget is for compiling";
  EXPECT_EQ(report.winner, 1u);
  EXPECT_EQ(report.candidates[3].outcome, CandidateOutcome::kPruned);
  EXPECT_EQ(report.candidates[3].detail, "not compiled: out of budget");

  machine.compiles = 0;
  options.budgetSeconds = 0;
  report = tuned(machine, options);
  EXPECT_TRUE(report.budgetExhausted);
  EXPECT_EQ(machine.compiles, 1u);
  EXPECT_EQ(report.winner, 0u);
  EXPECT_EQ(report.candidates[0].outcome, CandidateOutcome::kWinner);
  EXPECT_EQ(report.candidates[0].rounds, 0);
}

// Inputs are drawn before the tuner is called: its rounds end when the caller's time does.
TEST(TunerBudget, WhatWasSpentBeforeIsNotThereTwice) {
  TuneOptions options;
  options.budgetSeconds = 10;
  options.spentSeconds = 4;
  FakeMachine machine{.trueMs = {500, 500}};
  TuneReport report = tuned(machine, options);
  EXPECT_TRUE(report.budgetExhausted);
  EXPECT_GT(report.candidates[0].rounds, 0);
  EXPECT_LE(machine.seconds, 6 + 0.5) << "the run in hand is the last one";

  FakeMachine compiling{.trueMs = {1.0, 0.5, 0.4, 0.3}};
  compiling.compileSeconds = 2;
  options.compileThreads = 1;
  report = tuned(compiling, options);
  EXPECT_EQ(compiling.compiles, 2u) << "half of what is left is for compiling";

  options.spentSeconds = 11;
  FakeMachine late{.trueMs = {1.0, 0.5}};
  report = tuned(late, options);
  EXPECT_EQ(report.winner, 0u);
  EXPECT_FALSE(report.wasMeasured()) << "nothing is left";
}

TEST(TunerBudget, BudgetEndsCheckingAfterOneThatPasses) {
  FakeMachine machine{.trueMs = {1.0, 0.5, 0.4}};
  machine.checkSeconds = 20;
  machine.isWrong = {0};
  TuneOptions options;
  options.budgetSeconds = 10;
  TuneReport report = tuned(machine, options);
  EXPECT_TRUE(report.budgetExhausted);
  EXPECT_EQ(report.winner, 1u);
  EXPECT_EQ(report.candidates[2].detail, "not checked: out of budget");
}

TEST(TunerBudget, BudgetKeepsTimeToMeasureWhatWasChecked) {
  FakeMachine machine{.trueMs = {100, 50, 40, 30, 20}};
  machine.checkSeconds = 2;
  TuneOptions options;
  options.budgetSeconds = 10;
  TuneReport report = tuned(machine, options);
  EXPECT_TRUE(report.budgetExhausted);
  EXPECT_EQ(report.candidates[3].outcome, CandidateOutcome::kWinner) << "checks may take 7 s, the fourth began before";
  EXPECT_GT(report.candidates[3].rounds, 3) << "2 s were left";
  EXPECT_EQ(report.candidates[4].detail, "not checked: out of budget");
}

TEST(TunerBudget, BudgetEndsMeasuringWithTheBestSoFar) {
  FakeMachine machine{.trueMs = {2000, 1000, 1500}};
  TuneOptions options;
  options.budgetSeconds = 10; // two rounds of 4.5 s
  TuneReport report = tuned(machine, options);
  EXPECT_TRUE(report.budgetExhausted);
  EXPECT_EQ(report.winner, 1u);
  EXPECT_EQ(report.candidates[1].rounds, 2);
  EXPECT_LE(machine.seconds, 12.0) << "at most one run beyond the budget";

  FakeMachine another{.trueMs = {2000, 1000, 1500}};
  options.budgetSeconds = 3;
  report = tuned(another, options);
  EXPECT_EQ(report.winner, 0u) << "a round without its end compares nothing";
  EXPECT_TRUE(report.budgetExhausted);
}

// The incumbent fails in a round that the budget then cuts off: what does not run must not win for want of times.
TEST(TunerBudget, IncumbentThatFailsInACutRoundDoesNotWin) {
  int failedFirst = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    FakeMachine machine{.trueMs = {2000, 1000, 1500}};
    machine.doesNotRun = {0};
    TuneOptions options;
    options.budgetSeconds = 0.5;
    options.seed = seed;
    TuneReport report = tuned(machine, options);
    EXPECT_TRUE(report.budgetExhausted);
    if (report.candidates[0].detail.find("launch failed") == std::string::npos)
      continue; // its turn would have come after the end
    ++failedFirst;
    EXPECT_EQ(report.candidates[0].outcome, CandidateOutcome::kRejected) << seed;
    EXPECT_EQ(report.winner, 1u) << seed;
  }
  EXPECT_GT(failedFirst, 0);
}

} // namespace
} // namespace nsa
