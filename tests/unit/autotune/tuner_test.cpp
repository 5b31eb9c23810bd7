// Which candidates the tuner compiles, checks, measures and chooses, on a machine of numbers.
#include "tests/unit/autotune/fake_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace nsa {
namespace {

TEST(Tuner, PlantedSlowDefaultLoses) {
  FakeMachine machine{.trueMs = {2.0, 1.5, 1.0, 1.8}};
  TuneReport report = tuned(machine);
  EXPECT_EQ(report.winner, 2u);
  EXPECT_EQ(report.incumbent, 0u);
  EXPECT_FALSE(report.tie);
  EXPECT_FALSE(report.budgetExhausted);
  EXPECT_EQ(report.candidates[2].outcome, CandidateOutcome::kWinner);
  EXPECT_DOUBLE_EQ(report.candidates[2].ratioToIncumbent, 0.5);
  EXPECT_DOUBLE_EQ(report.candidates[2].medianMs, 1.0);
  EXPECT_EQ(report.candidates[2].rounds, 3 + 9 + 27);
  EXPECT_EQ(report.candidates[0].outcome, CandidateOutcome::kMeasured);
  EXPECT_EQ(report.candidates[0].rounds, 3 + 9 + 27) << "the incumbent is in every round";
  EXPECT_EQ(report.candidates[3].outcome, CandidateOutcome::kMeasured);
  EXPECT_EQ(report.candidates[3].rounds, 3);
  EXPECT_DOUBLE_EQ(report.candidates[3].ratioToIncumbent, 0.9);
}

// In a table that is ordered by time, such a winner stands below other candidates.
TEST(Tuner, AWinnerWithALongerMedianSaysWhy) {
  FakeMachine fast{.trueMs = {2.0, 1.5, 1.0}};
  EXPECT_EQ(tuned(fast).candidates[2].detail, "") << "no other is above it";
  FakeMachine defaultStays{.trueMs = {1.0, 0.997, 1.5}};
  TuneReport report = tuned(defaultStays);
  EXPECT_EQ(report.winner, 0u);
  EXPECT_EQ(report.candidates[0].detail, "the default stays: nothing beats it by 1 % and by more than the noise");
  FakeMachine simplerWins{.trueMs = {2.0, 1.004, 1.0}};
  report = tuned(simplerWins);
  EXPECT_EQ(report.winner, 1u);
  EXPECT_EQ(report.candidates[1].detail, "within 1 % of the fastest, and predicted to be cheaper");
  // The machine becomes slower and slower. A candidate that leaves after the first rounds was measured at its best.
  FakeMachine slowing{.trueMs = {2.0, 1.0, 1.2}, .drift = 1, .driftRuns = 80};
  report = tuned(slowing);
  EXPECT_EQ(report.winner, 1u);
  EXPECT_LT(report.candidates[2].medianMs, report.candidates[1].medianMs);
  EXPECT_EQ(report.candidates[1].detail,
            "the fastest where candidates ran side by side; medians of other rounds count less");
}

TEST(Tuner, FastButWrongIsRejectedAndRecorded) {
  FakeMachine machine{.trueMs = {2.0, 0.1, 1.0}};
  machine.isWrong = {1};
  TuneReport report = tuned(machine);
  EXPECT_EQ(report.winner, 2u);
  EXPECT_EQ(report.candidates[1].outcome, CandidateOutcome::kRejected);
  EXPECT_EQ(report.candidates[1].rounds, 0);
  EXPECT_NE(report.candidates[1].detail.find("largest difference 0.5"), std::string::npos);
  EXPECT_EQ(std::count(machine.order.begin(), machine.order.end(), 1u), 0) << "a wrong candidate is never measured";
}

TEST(Tuner, FailuresAreRecorded) {
  FakeMachine machine{.trueMs = {2.0, 1.0, 1.5}};
  machine.doesNotCompile = {1};
  TuneReport report = tuned(machine);
  EXPECT_EQ(report.winner, 2u);
  EXPECT_EQ(report.candidates[1].outcome, CandidateOutcome::kCompileFailed);
  EXPECT_NE(report.candidates[1].detail.find("candidate 1 does not compile"), std::string::npos);
}

TEST(Tuner, NextCandidateBecomesIncumbent) {
  for (int how = 0; how < 3; ++how) {
    FakeMachine machine{.trueMs = {1.0, 2.0, 1.5, 3.0}};
    (how == 0 ? machine.doesNotCompile : how == 1 ? machine.isWrong : machine.doesNotRun) = {0};
    TuneReport report = tuned(machine);
    EXPECT_EQ(report.incumbent, 1u) << how;
    EXPECT_EQ(report.winner, 2u) << how;
    EXPECT_DOUBLE_EQ(report.candidates[2].ratioToIncumbent, 0.75) << how;
    EXPECT_EQ(report.candidates[0].rounds, 0) << how;
    EXPECT_FALSE(report.candidates[0].detail.empty()) << how;
  }
}

TEST(Tuner, IncumbentThatBreaksLateKeepsTheOthersRatios) {
  FakeMachine machine{.trueMs = {1.0, 1.1, 0.95, 1.05}, .noise = 0.03};
  TuneCallbacks callbacks = machine.callbacks();
  int runs = 0;
  auto measure = callbacks.measure;
  callbacks.measure = [&](size_t index) -> Result<double> {
    if (index == 0 && ++runs > 5)
      return Status::error(ErrorCode::kDeviceError, "lost");
    return measure(index);
  };
  Result<TuneReport> report = tune(candidatesFor(machine), callbacks, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->candidates[0].outcome, CandidateOutcome::kRejected);
  EXPECT_NE(report->incumbent, 0u);
  EXPECT_EQ(report->winner, 2u);
}

TEST(Tuner, NotANumberIsAFailureNotATime) {
  FakeMachine machine{.trueMs = {1.0, NAN, 0.0, -1.0}};
  TuneReport report = tuned(machine);
  EXPECT_EQ(report.winner, 0u);
  for (size_t i = 1; i < 4; ++i)
    EXPECT_EQ(report.candidates[i].outcome, CandidateOutcome::kRejected) << i;
}

TEST(Tuner, AllFail) {
  FakeMachine machine{.trueMs = {1, 1, 1}};
  machine.doesNotCompile = {0, 1};
  machine.isWrong = {2};
  Result<TuneReport> report = tune(candidatesFor(machine), machine.callbacks(), {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.status().code(), ErrorCode::kCompileFailed);
  EXPECT_NE(report.status().toString().find("2 did not compile, 1 did not compute"), std::string::npos)
      << report.status().toString();
  EXPECT_NE(report.status().toString().find("candidate 0 does not compile"), std::string::npos);

  machine.doesNotCompile.clear();
  machine.isWrong.clear();
  machine.doesNotRun = {0, 1, 2};
  report = tune(candidatesFor(machine), machine.callbacks(), {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.status().code(), ErrorCode::kDeviceError);
}

TEST(Tuner, NoCandidates) {
  FakeMachine machine;
  EXPECT_EQ(tune({}, machine.callbacks(), {}).status().code(), ErrorCode::kUnsupported);
}

TEST(Tuner, OnlyOneCandidateWinsAfterOneRung) {
  FakeMachine machine{.trueMs = {1.0}};
  TuneReport report = tuned(machine);
  EXPECT_EQ(report.winner, 0u);
  EXPECT_EQ(report.candidates[0].rounds, 3);
  EXPECT_EQ(report.candidates[0].ratioToIncumbent, 1.0);
  EXPECT_FALSE(report.tie);
}

TEST(Tuner, TieGoesToTheSimplerConfigAndIsReported) {
  FakeMachine machine{.trueMs = {1.5, 1.004, 1.0, 1.006}};
  TuneReport report = tuned(machine);
  EXPECT_EQ(report.winner, 1u) << "0.4 % slower but cheaper predicted";
  EXPECT_TRUE(report.tie);

  FakeMachine apart{.trueMs = {1.5, 1.02, 1.0}};
  report = tuned(apart);
  EXPECT_EQ(report.winner, 2u) << "2 % is a difference";
  EXPECT_FALSE(report.tie);
}

TEST(Tuner, OnlyTheCheapestPredictedAreCompiled) {
  FakeMachine machine{.trueMs = std::vector<double>(40, 1.0)};
  machine.trueMs[39] = 0.5;
  std::vector<Candidate> candidates = candidatesFor(machine);
  candidates[0].predictedCost = 1e9; // the default is compiled however dear it looks
  TuneOptions options;
  options.maxCompiled = 12;
  Result<TuneReport> report = tune(candidates, machine.callbacks(), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(machine.compiles, 12u);
  EXPECT_GT(report->candidates[0].rounds, 0);
  EXPECT_GT(report->candidates[11].rounds, 0);
  EXPECT_EQ(report->candidates[12].outcome, CandidateOutcome::kPruned);
  EXPECT_EQ(report->candidates[39].outcome, CandidateOutcome::kPruned);
  EXPECT_EQ(report->candidates[39].detail, "not compiled: beyond the 12 cheapest predicted");
}

// The search that others are judged by: the cost model prunes no candidate, and none leaves, however slow it is.
TEST(Tuner, AnExhaustiveSearchMeasuresEveryCandidateToTheEnd) {
  FakeMachine machine{.trueMs = std::vector<double>(40, 1.0)};
  machine.trueMs[7] = 50;
  machine.trueMs[39] = 0.5; // the dearest predicted is the fastest
  TuneOptions options;
  options.maxCompiled = 12;
  options.budgetSeconds = 1e9;
  options.exhaustive = true;
  const std::vector<Candidate> candidates = candidatesFor(machine);
  Result<TuneReport> report = tune(candidates, machine.callbacks(), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(machine.compiles, 40u);
  EXPECT_EQ(report->winner, 39u);
  for (const CandidateReport &candidate : report->candidates)
    EXPECT_EQ(candidate.rounds, 3 + 9 + 27) << candidate.candidate.config;
  EXPECT_FALSE(report->budgetExhausted);
}

// Three templates whose costs lie worlds apart: what one says of itself must not keep the others from the race.
TEST(Tuner, EveryTemplatesCheapestAreCompiled) {
  FakeMachine machine{.trueMs = std::vector<double>(60, 1.0)};
  machine.trueMs[50] = 0.5;
  std::vector<Candidate> candidates = candidatesFor(machine); // the incumbent and 39 more of the cheap template
  for (size_t i = 40; i < 59; ++i) {
    candidates[i].templateName = "row_attention";
    candidates[i].predictedCost = 1e6 + std::fabs(static_cast<double>(i) - 50); // its cheapest: 50, 49, 51, 48
  }
  candidates[59].templateName = "only_one";
  candidates[59].predictedCost = 1e12;
  TuneOptions options;
  options.maxCompiled = 12;
  Result<TuneReport> report = tune(candidates, machine.callbacks(), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(machine.compiles, 12u);
  EXPECT_EQ(report->winner, 50u);
  std::set<size_t> measured;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (report->candidates[i].rounds > 0)
      measured.insert(i);
  EXPECT_EQ(measured, (std::set<size_t>{0, 1, 2, 3, 4, 5, 6, 48, 49, 50, 51, 59}));

  machine.compiles = 0;
  options.maxCompiled = 1;
  report = tune(candidates, machine.callbacks(), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(machine.compiles, 3u) << "one of each template, however small the limit";
  EXPECT_EQ(report->winner, 50u);
}

TEST(Tuner, RoundsAreInterleavedInRandomOrder) {
  FakeMachine machine{.trueMs = {1.0, 1.0, 1.0, 1.0}};
  tuned(machine);
  ASSERT_GE(machine.order.size(), 12u);
  std::vector<std::vector<size_t>> rounds;
  for (size_t i = 0; i < 12; i += 4) {
    rounds.emplace_back(machine.order.begin() + static_cast<ptrdiff_t>(i),
                        machine.order.begin() + static_cast<ptrdiff_t>(i + 4));
    EXPECT_EQ(std::set<size_t>(rounds.back().begin(), rounds.back().end()).size(), 4u);
  }
  EXPECT_FALSE(rounds[0] == rounds[1] && rounds[1] == rounds[2]);
}

TEST(Tuner, SameSeedSameReport) {
  auto run = [] {
    FakeMachine machine{.trueMs = {1.0, 0.99, 1.01, 0.97, 1.2}, .noise = 0.03, .outliers = 0.05};
    TuneReport report = tuned(machine);
    return std::pair(report.winner, report.candidates[3].ratioToIncumbent);
  };
  EXPECT_EQ(run(), run());
}

TEST(Tuner, HopelessCandidatesRunOnce) {
  FakeMachine machine{.trueMs = {1.0, 20.0, 2.5, 0.9}};
  TuneReport report = tuned(machine);
  EXPECT_EQ(report.candidates[1].rounds, 1);
  EXPECT_EQ(report.candidates[2].rounds, 3) << "less than three times slower: it gets its rounds";
  EXPECT_EQ(report.winner, 3u);

  FakeMachine slowDefault{.trueMs = {20.0, 1.0, 1.1}};
  report = tuned(slowDefault);
  EXPECT_EQ(report.candidates[0].rounds, 3 + 9 + 27) << "the incumbent stays, its ratio is what tuning gains";
}

TEST(Tuner, CompilesOnSeveralThreadsEachOnce) {
  std::vector<std::atomic<int>> compiled(30);
  FakeMachine machine{.trueMs = std::vector<double>(30, 1.0)};
  TuneCallbacks callbacks = machine.callbacks();
  callbacks.compile = [&](size_t index) {
    ++compiled[index];
    return Status::ok();
  };
  std::set<std::string> phases;
  size_t last = 0;
  callbacks.progress = [&](std::string_view phase, size_t done, size_t total) {
    phases.emplace(phase);
    EXPECT_LE(done, total);
    last = done;
  };
  TuneOptions options;
  options.compileThreads = 8;
  ASSERT_TRUE(tune(candidatesFor(machine), callbacks, options));
  for (const auto &count : compiled)
    EXPECT_EQ(count, 1);
  EXPECT_EQ(phases, (std::set<std::string>{"compile", "check", "measure"}));
  EXPECT_EQ(last, 39u);
}

TEST(Tuner, OutcomeNamesAreThoseOfTheStore) {
  const char *names[] = {"pruned", "failed", "rejected", "measured", "winner"};
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(candidateOutcomeName(static_cast<CandidateOutcome>(i)), names[i]);
}

} // namespace
} // namespace nsa
