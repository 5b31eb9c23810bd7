#include "runtime/engine/tune/pruned_candidates.h"

#include <algorithm>
#include <charconv>

namespace nsa {
namespace {

constexpr std::string_view kCandidates = " candidates ";

} // namespace

std::vector<Measurement> prunedRows(const TuneReport &report) {
  std::vector<PrunedCandidates> reasons;
  for (const CandidateReport &entry : report.candidates) {
    if (entry.outcome != CandidateOutcome::kPruned)
      continue;
    auto known = std::ranges::find(reasons, entry.detail, &PrunedCandidates::reason);
    if (known == reasons.end())
      known = reasons.insert(reasons.end(), {0, entry.detail});
    ++known->count;
  }
  std::vector<Measurement> rows;
  for (const PrunedCandidates &each : reasons) {
    Measurement row;
    row.outcome = candidateOutcomeName(CandidateOutcome::kPruned);
    row.detail = std::to_string(each.count) + std::string(kCandidates) + each.reason;
    rows.push_back(std::move(row));
  }
  return rows;
}

PrunedCandidates parsePruned(std::string_view detail) {
  size_t count = 0;
  const auto [end, error] = std::from_chars(detail.data(), detail.data() + detail.size(), count);
  const std::string_view rest = detail.substr(static_cast<size_t>(end - detail.data()));
  if (error != std::errc() || !rest.starts_with(kCandidates))
    return {1, std::string(detail)};
  return {count, std::string(rest.substr(kCandidates.size()))};
}

} // namespace nsa
