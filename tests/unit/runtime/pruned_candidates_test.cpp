// Candidates that a tuning never measured are kept as numbers: each reason once, and the number comes back.
#include "runtime/engine/tune/pruned_candidates.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

TuneReport reportOf(const std::vector<std::pair<CandidateOutcome, std::string>> &entries) {
  TuneReport report;
  for (const auto &[outcome, detail] : entries) {
    CandidateReport &entry = report.candidates.emplace_back();
    entry.candidate = {"attention", "key_tile=32", 1};
    entry.outcome = outcome;
    entry.detail = detail;
  }
  return report;
}

TEST(PrunedCandidates, EachReasonIsARow) {
  const std::vector<Measurement> rows = prunedRows(reportOf({{CandidateOutcome::kWinner, ""},
                                                             {CandidateOutcome::kPruned, "not compiled: b"},
                                                             {CandidateOutcome::kPruned, "not checked: a"},
                                                             {CandidateOutcome::kRejected, "not compiled: b"},
                                                             {CandidateOutcome::kPruned, "not compiled: b"}}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].outcome, "pruned");
  EXPECT_EQ(rows[0].templateName + rows[0].config, "");
  EXPECT_EQ(rows[0].detail, "2 candidates not compiled: b");
  EXPECT_EQ(rows[1].detail, "1 candidates not checked: a");
  const PrunedCandidates back = parsePruned(rows[0].detail);
  EXPECT_EQ(back.count, 2u);
  EXPECT_EQ(back.reason, "not compiled: b");
}

TEST(PrunedCandidates, ATuningThatTriedAllHasNoRow) {
  EXPECT_TRUE(prunedRows(reportOf({{CandidateOutcome::kWinner, ""}, {CandidateOutcome::kMeasured, ""}})).empty());
}

// Rows of a tuner's report, and of databases that kept a row for each.
TEST(PrunedCandidates, ATextWithoutANumberIsOneCandidate) {
  for (const char *text : {"not compiled: out of budget", "", "12", "12 others not compiled", "candidates x",
                           "99999999999999999999999 candidates not compiled"}) {
    const PrunedCandidates one = parsePruned(text);
    EXPECT_EQ(one.count, 1u) << text;
    EXPECT_EQ(one.reason, text);
  }
}

} // namespace
} // namespace nsa
