#include "bench/verbs/search_bench.h"

#include <algorithm>
#include <optional>

namespace nsa::bench {
namespace {

constexpr const char *kUsual = "tuned", *kExhaustive = "exhaustive";

// Of the tuner's report: how many of the candidates were measured, and what it took.
void addSearch(nlohmann::ordered_json &row, const std::string &name, const nlohmann::json &report) {
  row["candidates"] = report["candidates"].size();
  row[name + "_measured"] = report.value("measured", 0);
  row[name + "_seconds"] = report.value("milliseconds", 0.0) * 1e-3;
  row[name + "_cut"] = report.value("budget_exhausted", false);
  row[name + "_template"] = report["winner"].value("template", "");
  row[name + "_config"] = report["winner"].value("config", "");
}

// How much slower than its winner the exhaustive search found another's, in its own rounds; nothing where it could not
// measure that one.
std::optional<double> slowdownIn(const nlohmann::json &exhaustive, const nlohmann::json &winner) {
  const double best = exhaustive["winner"].value("ratio_to_default", 0.0);
  for (const nlohmann::json &candidate : exhaustive["candidates"])
    if (candidate["template"] == winner["template"] && candidate["config"] == winner["config"] && best > 0 &&
        candidate.value("milliseconds", 0.0) > 0)
      return candidate.value("ratio_to_default", 0.0) / best;
  return std::nullopt;
}

class SearchBench {
public:
  SearchBench(BenchDevice &device, const SearchChoice &choice) : device(device), choice(choice) {}

  Result<nlohmann::ordered_json> run() {
    NSA_RETURN_IF_ERROR(open());
    for (const NamedSpec &named : choice.lengths.specs)
      for (const Operator op : choice.operators)
        for (const int64_t tokens : choice.lengths.tokens) {
          BenchCase benchCase = promptCase(named.name, named.spec, tokens);
          benchCase.spec.op = op;
          NSA_RETURN_IF_ERROR(measure(benchCase));
        }
    return report->content();
  }

private:
  Status open() {
    // What one finds ready the other must not: each has a database of its own, in memory.
    tools::EngineSettings settings = tools::withNothingStored(choice.engine);
    for (const bool exhaustive : {false, true}) {
      settings.tuneExhaustive = exhaustive;
      if (exhaustive)
        settings.tuneBudgetSeconds = choice.exhaustiveSeconds;
      NSA_ASSIGN_OR_RETURN(engines[exhaustive], tools::createEngine(settings));
    }
    NSA_ASSIGN_OR_RETURN(
        report,
        choice.lengths.report(device, "search",
                              {"operator = op", "heads", "tokens", "candidates", "tuned: measured = tuned_measured",
                               "s = tuned_seconds", "ms = tuned_ms", "exhaustive: measured = exhaustive_measured",
                               "s  = exhaustive_seconds", "ms  = exhaustive_ms", "tuned / exhaustive = ratio",
                               "in its rounds = ratio_in_search"}));
    return Status::ok();
  }

  Status measure(const BenchCase &benchCase) {
    nlohmann::ordered_json row = caseFields(benchCase);
    const std::string op(operatorName(benchCase.spec.op));
    nlohmann::json reports[2];
    for (const bool exhaustive : {false, true}) {
      choice.lengths.say((exhaustive ? "exhaustive search, " : "search, ") + op, benchCase);
      NSA_ASSIGN_OR_RETURN(reports[exhaustive],
                           tools::tune(engines[exhaustive].get(), benchCase.spec, benchCase.maxima));
      addSearch(row, exhaustive ? kExhaustive : kUsual, reports[exhaustive]);
    }
    choice.lengths.say("both winners, " + op, benchCase);
    NSA_RETURN_IF_ERROR(measureWinners(benchCase, row));
    const std::optional<double> slowdown = slowdownIn(reports[1], reports[0]["winner"]);
    row["ratio_in_search"] = slowdown ? nlohmann::ordered_json(*slowdown) : nlohmann::ordered_json();
    row["same_winner"] =
        row["tuned_template"] == row["exhaustive_template"] && row["tuned_config"] == row["exhaustive_config"];
    const double ratio = row["ratio"];
    ++shapes;
    within += ratio <= kSearchLimit;
    worst = std::max(worst, ratio);
    NSA_RETURN_IF_ERROR(report->add(std::move(row)));
    return report->setFact("search",
                           {{"limit", kSearchLimit}, {"shapes", shapes}, {"within", within}, {"worst", worst}});
  }

  // In turns, on fresh inputs that neither was tuned on.
  Status measureWinners(const BenchCase &benchCase, nlohmann::ordered_json &row) {
    NSA_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena,
                         device.arena(drawInputs(benchCase), choice.lengths.warmUps));
    std::vector<std::unique_ptr<PlanContender>> contenders;
    for (const bool exhaustive : {false, true}) {
      NSA_ASSIGN_OR_RETURN(std::unique_ptr<PlanContender> contender,
                           PlanContender::make(exhaustive ? kExhaustive : kUsual, engines[exhaustive].get(), *arena));
      contenders.push_back(std::move(contender));
    }
    NSA_ASSIGN_OR_RETURN(const std::vector<Times> times, measureAll(allOf(contenders), choice.lengths.samples));
    for (size_t i = 0; i < contenders.size(); ++i) {
      row[contenders[i]->name() + "_ms"] = times[i].medianMs;
      row[contenders[i]->name() + "_fastest_ms"] = times[i].fastestMs;
    }
    row["ratio"] = times[0].medianMs / times[1].medianMs;
    return Status::ok();
  }

  BenchDevice &device;
  const SearchChoice &choice;
  tools::EngineHandle engines[2]; // the usual search, the exhaustive one
  std::optional<BenchReport> report;
  int shapes = 0, within = 0;
  double worst = 0;
};

} // namespace

Result<nlohmann::ordered_json> benchSearch(BenchDevice &device, const SearchChoice &choice) {
  return SearchBench(device, choice).run();
}

} // namespace nsa::bench
