#include "autotune/workload/tune_record.h"

#include "autotune/tuner/tuner.h"
#include "runtime/base/text.h"
#include "runtime/engine/choices/routes.h"
#include "runtime/engine/report/timed_shape.h"
#include "runtime/engine/tune/pruned_candidates.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace nsa {
namespace {

using Json = nlohmann::ordered_json;

Json brief(const nlohmann::json &candidate) {
  return {{"template", candidate.value("template", "")},
          {"config", candidate.value("config", "")},
          {"milliseconds", candidate.value("milliseconds", 0.0)},
          {"ratio_to_default", candidate.value("ratio_to_default", 0.0)}};
}

// Of the candidates: the default, the winner, the fastest of each template, how many became what, and those that were
// tried one by one.
void addCandidates(Json &record, const nlohmann::json &candidates) {
  Json counts = {{"measured", 0}, {"rejected", 0}, {"failed", 0}, {"pruned", 0}};
  std::map<std::string, const nlohmann::json *> best;
  Json tried = Json::array();
  for (const nlohmann::json &candidate : candidates) {
    const std::string outcome = candidate.value("outcome", "");
    if (outcome == "pruned") {
      counts["pruned"] = counts["pruned"].get<size_t>() + parsePruned(candidate.value("detail", "")).count;
      continue;
    }
    tried.push_back(Json(candidate));
    const double milliseconds = candidate.value("milliseconds", 0.0), ratio = candidate.value("ratio_to_default", 0.0);
    // What won because nothing was measured is no winner.
    const std::string kind = outcome != "winner" ? outcome : milliseconds > 0 ? "measured" : "";
    if (counts.contains(kind))
      counts[kind] = counts[kind].get<int>() + 1;
    if (milliseconds <= 0)
      continue;
    if (outcome == "winner")
      record["winner"] = brief(candidate);
    // Ratios are relative to the default.
    if (std::abs(ratio - 1) < 1e-12 && !record.contains("default"))
      record["default"] = brief(candidate);
    const nlohmann::json *&fastest = best[candidate.value("template", "")];
    if (!fastest || ratio < fastest->value("ratio_to_default", 0.0))
      fastest = &candidate;
  }
  record["candidates"] = std::move(counts);
  record["templates"] = Json::array();
  for (const auto &[name, candidate] : best)
    record["templates"].push_back(brief(*candidate));
  record["evidence"] = std::move(tried);
}

} // namespace

Json jobRecord(const TuneJob &job, const std::string &device, bool isGpu) {
  Json record = {{"problem", job.problem},
                 {"device", device},
                 {"workloads", job.workloads},
                 {"family", job.family},
                 {"operator", operatorName(job.kernel.op)},
                 {"role", job.role},
                 {"heads", job.head},
                 {"call", operatorName(job.spec.op)},
                 {"dtype", dtypeName(job.spec.dtype)},
                 {"layout", layoutName(job.spec.layout)},
                 {"page_size", job.spec.pageSize},
                 {"batch", job.maxima.batch},
                 {"seqlen_q", job.maxima.seqlenQ},
                 {"seqlen_k", job.maxima.seqlenK},
                 {"has_choices", job.isTuned}};
  if (hasVariants(job.kernel.op))
    record["route"] = {{"family", routeFamily(job.kernel)}, {"name", attentionRoute(job.kernel.op)}};
  if (definitionOf(job.kernel.op).keys == MetKeys::kListed && definitionOf(job.spec.op).isForward())
    record["route"] = {{"family", routeFamily(job.kernel)}, {"name", kDenseRoute}};
  if (hasSplitsRoute(job.kernel.op))
    record["route"] = {{"family", splitsFamily(job.spec)}, {"name", splitsRoute(job.spec, job.maxima)}};
  if (const std::optional<TimedCall> call = job.isTuned ? timedCall(job, isGpu) : std::nullopt) {
    record["timed"] = {{"batch", call->batch}, {"seqlen_q", call->seqlenQ}, {"seqlen_k", call->seqlenK}};
    record["cut"] = call->cut;
  }
  return record;
}

std::string_view tuneStateName(TuneState state) {
  constexpr std::string_view kNames[kTuneStates] = {"tuned", "tuned elsewhere", "made", "stored", "failed", "left"};
  return kNames[static_cast<size_t>(state)];
}

Json TuneCounts::json() const {
  Json counts = {{"kernels", kernels()}};
  for (size_t i = 0; i < kTuneStates; ++i)
    counts[std::string(tuneStateName(static_cast<TuneState>(i)))] = by[i];
  return counts;
}

Json workloadReports(const std::vector<Workload> &workloads, const std::vector<TuneRow> &rows) {
  Json reports = Json::array();
  for (const Workload &workload : workloads) {
    TuneCounts counts;
    int shared = 0;
    for (const TuneRow &row : rows) {
      const std::vector<std::string> &names = row.job->workloads;
      if (std::ranges::find(names, workload.name) == names.end())
        continue;
      shared += names.size() > 1;
      ++counts[row.state];
    }
    reports.push_back({{"name", workload.name},
                       {"description", workload.description},
                       {"path", workload.path},
                       {"counts", counts.json()},
                       {"shared", shared}});
  }
  return reports;
}

std::string titleOf(const std::vector<Workload> &workloads) {
  const std::string title = joined(workloads, ", ", &Workload::name);
  // All have the same limit and direction.
  const Workload first = workloads.empty() ? Workload() : workloads.front();
  const std::string direction = first.direction == TuneDirection::kForward    ? ""
                                : first.direction == TuneDirection::kBackward ? ", backward"
                                                                              : ", forward and backward";
  return title + direction + (first.operators.empty() ? "" : " (" + operatorsText(first.operators) + " alone)");
}

std::string_view directionOf(const std::vector<Workload> &workloads) {
  return directionName(workloads.empty() ? TuneDirection::kForward : workloads.front().direction);
}

Json operatorNames(const std::vector<Workload> &workloads) {
  Json names = Json::array();
  if (!workloads.empty())
    for (const Operator op : workloads.front().operators)
      names.push_back(operatorName(op));
  return names;
}

void addReport(Json &record, const nlohmann::json &report) {
  if (!report.contains("candidates"))
    return;
  record["milliseconds_of_tuning"] = report.value("milliseconds", 0.0);
  for (const char *name : {"seconds_in", "cut", "tie", "noise", "budget_exhausted", "seed"})
    if (report.contains(name))
      record[name] = report[name];
  addCandidates(record, report["candidates"]);
}

void addStored(Json &record, const StoredChoice &choice) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const Measurement &entry : choice.evidence)
    candidates.push_back({{"template", entry.templateName},
                          {"config", entry.config},
                          {"outcome", entry.outcome},
                          {"milliseconds", entry.milliseconds},
                          {"ratio_to_default", entry.ratioToIncumbent},
                          {"detail", entry.detail}});
  record["provenance"] = choice.provenance;
  // Choices of earlier versions do not say it. For them the record keeps the part that a tuning would time today.
  if (const std::string cut = cutTextOf(choice.provenance); !cut.empty())
    record["cut"] = cut;
  if (record["has_choices"] == true)
    record["tie"] =
        std::ranges::any_of(choice.evidence, [](const Measurement &entry) { return entry.detail == kTied; });
  if (record["has_choices"] == true)
    addCandidates(record, candidates);
}

} // namespace nsa
