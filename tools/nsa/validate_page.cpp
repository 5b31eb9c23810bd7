#include "tools/nsa/validate_steps.h"

#include "tools/nsa/command/command.h"
#include "tools/nsa/files/file_io.h"
#include "tools/report/page.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;
using report::Axis;
using report::Page;
using report::Plot;
using report::Table;
using Tone = Table::Tone;

constexpr uint64_t kMostStepBytes = uint64_t{256} << 20;

std::string textOf(const Json &object, const char *name) {
  auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string wholeText(double count) { return std::to_string(static_cast<int64_t>(count)); }

class PageWriter {
public:
  PageWriter(const ValidateChoice &choice, const std::vector<ValidateStep> &steps)
      : choice(choice), steps(steps), page("NSA Runtime: validation") {}

  std::string write() {
    addSteps();
    addEnvironment();
    addRouting("routing.json", "Routing");
    addRouting("gradient_routing.json", "Routing of the gradient");
    addChecks();
    addDecode();
    addThresholds();
    addSelection();
    page.heading("Configuration");
    page.paragraph(choice.config);
    return page.html();
  }

private:
  // What a step left; null when there is nothing to read.
  Json resultOf(const std::string &output) const {
    Result<std::string> text = readText(choice.file(output), kMostStepBytes);
    return text ? Json::parse(*text, nullptr, false) : Json();
  }

  void addSteps() {
    const auto failed = std::ranges::count(steps, false, &ValidateStep::ok);
    if (failed)
      page.warning(std::to_string(failed) + " of " + std::to_string(steps.size()) + " steps failed.");
    else
      page.paragraph("All " + std::to_string(steps.size()) + " steps passed.");
    Table table({{"step"}, {"result"}, {"time", true}, {"what it does"}, {"file"}, {"why it failed"}});
    for (const ValidateStep &step : steps)
      table.add({step.name, step.ok ? "passed" : "failed", formatNumber("%.1f s", step.seconds), step.purpose,
                 step.output, step.trouble},
                step.ok ? Tone::kGood : Tone::kBad);
    page.add(table);
  }

  void addEnvironment() {
    const Json environment = resultOf("environment.json");
    if (!environment.contains("findings"))
      return;
    page.heading("Environment");
    Table table({{"subject"}, {"usable"}, {"what was found"}, {"to do"}});
    for (const Json &finding : environment["findings"])
      table.add({textOf(finding, "subject"), finding.value("ok", false) ? "yes" : "no", textOf(finding, "text"),
                 textOf(finding, "advice")},
                finding.value("ok", false) ? Tone::kPlain : Tone::kQuiet);
    page.add(table);
  }

  void addRouting(const std::string &output, const std::string &title) {
    const Json routing = resultOf(output);
    if (!routing.is_object())
      return;
    page.heading(title + " at " + std::to_string(choice.tokens) + " tokens");
    Table table({{"part"}, {"template"}, {"configuration"}, {"step"}, {"measured"}, {"why"}});
    for (const Json &kernel : routing.contains("kernels") ? routing["kernels"] : Json::array({routing}))
      table.add({textOf(kernel, "part"), textOf(kernel, "variant"), textOf(kernel, "config"), textOf(kernel, "step"),
                 kernel.value("tuned", false) ? "yes" : "no", textOf(kernel, "why")});
    page.add(table);
  }

  static void addCheck(Table &table, const std::string &of, const Json &check) {
    const bool within = check.value("within", false);
    table.add({of, textOf(check, "output"), within ? "within" : "beyond", textOf(check, "text")},
              within ? Tone::kGood : Tone::kBad);
  }

  void addChecks() {
    Table table({{"of"}, {"output"}, {"the contract"}, {"figures and limits"}});
    for (const ValidateStep &step : steps) {
      const Json result = step.output.ends_with(".json") ? resultOf(step.output) : Json();
      if (!result.is_object() || !result.contains("checks"))
        continue;
      for (const Json &check : result["checks"])
        addCheck(table, step.name, check);
      if (result.contains("decode"))
        for (const Json &decoded : result["decode"])
          for (const Json &check : decoded["checks"])
            addCheck(table, step.name + ", decoded", check);
    }
    if (table.isEmpty())
      return;
    page.heading("Against the fp64 reference");
    page.add(table);
  }

  void addDecode() {
    const Json decode = resultOf("decode.json");
    if (!decode.contains("results"))
      return;
    page.heading("Decoding");
    Table table({{"tokens in the cache", true}, {"step, us", true}, {"tokens read", true}, {"formula", true}});
    Plot plot("A step of decoding", Axis("tokens in the cache", Axis::Scale::kBinary),
              Axis("microseconds", Axis::Scale::kDecimal));
    Plot::Series line{.name = "step", .points = {}};
    for (const Json &row : decode["results"]) {
      const double tokens = row.value("S", 0.0), step = 1000 * row.value("ms_total", 0.0);
      table.add({wholeText(tokens), report::numberText(step), wholeText(row.value("reads_actual", 0.0)),
                 wholeText(row.value("reads_expected", 0.0))});
      line.points.push_back({tokens, step, report::numberText(step) + " us"});
    }
    plot.add(std::move(line));
    page.add(table);
    page.add(std::vector<Plot>{plot});
  }

  void addThresholds() {
    const Json found = resultOf("thresholds.json");
    if (!found.contains("thresholds"))
      return;
    page.heading("Thresholds");
    Table table({{"route"}, {"answer"}});
    std::map<std::string, double> marks;
    for (const Json &threshold : found["thresholds"]) {
      table.add({textOf(threshold, "route"), textOf(threshold, "text")});
      if (threshold.contains("threshold") && threshold["threshold"].is_number())
        marks[textOf(threshold, "route")] = threshold["threshold"].get<double>();
    }
    page.add(table);
    std::map<std::string, std::pair<Plot::Series, Plot::Series>> byRoute;
    for (const Json &row : found["results"]) {
      auto &[usual, other] = byRoute[textOf(row, "route")];
      usual.name = textOf(row, "usual");
      other.name = textOf(row, "other");
      const double tokens = row.value("tokens", 0.0);
      for (auto &[series, field] : {std::pair{&usual, "usual_ms"}, std::pair{&other, "other_ms"}})
        series->points.push_back(
            {tokens, row.value(field, 0.0),
             report::numberText(row.value(field, 0.0)) + " ms at " + wholeText(tokens) + " tokens"});
    }
    std::vector<Plot> plots;
    for (auto &[route, ways] : byRoute) {
      Plot plot(route, Axis("tokens", Axis::Scale::kBinary), Axis("milliseconds", Axis::Scale::kDecimal));
      plot.add(std::move(ways.first));
      plot.add(std::move(ways.second));
      if (auto mark = marks.find(route); mark != marks.end())
        plot.mark({mark->second, "threshold"});
      plots.push_back(std::move(plot));
    }
    if (!plots.empty())
      page.add(plots);
  }

  // How many ranges, and tokens in them, a query's group selected.
  void addSelection() {
    Result<std::string> text = readText(choice.file("selection.jsonl"), kMostStepBytes);
    if (!text)
      return;
    std::istringstream lines(*text);
    double groups = 0, ranges = 0, tokens = 0, queries = 0;
    for (std::string line; std::getline(lines, line);) {
      const Json query = Json::parse(line, nullptr, false);
      if (!query.contains("ranges"))
        continue;
      ++queries;
      for (const Json &group : query["ranges"]) {
        ++groups;
        for (const Json &range : group) {
          ++ranges;
          tokens += range.at(1).get<double>() - range.at(0).get<double>();
        }
      }
    }
    if (groups == 0)
      return;
    page.heading("Selection");
    page.facts({{"Queries", wholeText(queries)},
                {"Ranges of a query and group", report::numberText(ranges / groups) + " on average"},
                {"Tokens in them", wholeText(tokens / groups) + " on average"}});
  }

  const ValidateChoice &choice;
  const std::vector<ValidateStep> &steps;
  Page page;
};

} // namespace

std::string validateHtml(const ValidateChoice &choice, const std::vector<ValidateStep> &steps) {
  return PageWriter(choice, steps).write();
}

} // namespace nsa::tools
