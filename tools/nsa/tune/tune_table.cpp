#include "tools/nsa/tune/tune_report.h"

#include "tools/nsa/command/command.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

namespace nsa::tools {
namespace {

double timeOf(const nlohmann::json &candidate) { return candidate.value("milliseconds", 0.0); }

std::string row(const std::string &outcome, const std::string &median, const std::string &ratio,
                const std::string &rounds, const std::string &candidate) {
  char head[64];
  std::snprintf(head, sizeof head, "%-10s %12s %10s %7s  ", outcome.c_str(), median.c_str(), ratio.c_str(),
                rounds.c_str());
  return head + candidate + "\n";
}

std::string rowOf(const nlohmann::json &candidate) {
  const bool isTimed = timeOf(candidate) > 0;
  const std::string detail = candidate.value("detail", "");
  return row(candidate.value("outcome", ""), isTimed ? millisecondsText(timeOf(candidate)) : "-",
             isTimed ? formatNumber("%.3f", candidate.value("ratio_to_default", 0.0)) : "-",
             std::to_string(candidate.value("rounds", 0)),
             candidate.value("template", "") + " " + candidate.value("config", "") +
                 (detail.empty() ? "" : ": " + detail));
}

} // namespace

std::string tuneTable(const nlohmann::json &report) {
  const auto count = [&](const char *name) { return std::to_string(report.value(name, 0)) + " " + name; };
  std::string text = report.value("problem", "") + "\non " + report.value("device", "") + ": " + count("compiled") +
                     ", " + count("measured") + ", " + count("rejected") + " in " +
                     millisecondsText(report.value("milliseconds", 0.0)) +
                     (report.value("budget_exhausted", false) ? " (the budget ended it)" : "") + "\n";
  if (const std::string cut = report.value("cut", ""); !cut.empty())
    text += "Times are of a part of the call: " + cut + "\n";
  text += row("outcome", "median", "x default", "rounds", "candidate");
  // Candidates without a time come last, in the order of the report.
  const nlohmann::json &candidates = report["candidates"];
  std::vector<std::pair<double, size_t>> tried;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].value("outcome", "") != "pruned")
      tried.emplace_back(timeOf(candidates[i]) > 0 ? timeOf(candidates[i]) : std::numeric_limits<double>::infinity(),
                         i);
  std::ranges::sort(tried);
  for (const auto &[time, index] : tried)
    text += rowOf(candidates[index]);
  text += prunedText(candidates);
  if (report.value("tuned_elsewhere", false))
    text += "Another caller was tuning the same: this is its result.\n";
  if (!report.value("tuned", true))
    text += "The budget ended before anything was measured: this is the default, and a winner that was stored stays.\n";
  if (report.value("tie", false))
    text += "Another candidate may be as fast as the winner: measuring again may choose that one.\n";
  return text;
}

} // namespace nsa::tools
