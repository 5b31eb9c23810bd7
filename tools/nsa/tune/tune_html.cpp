#include "tools/nsa/tune/tune_report.h"

#include "tools/nsa/command/command.h"
#include "tools/report/page.h"
#include "tools/support/progress.h"

#include <map>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;
using report::Page;
using report::Table;

std::string shortId(const std::string &id) { return id.substr(0, 12); }

std::string countsText(const Json &counts) {
  std::string line;
  for (const auto &[name, count] : counts.items())
    if (name != "kernels" && count.get<int>() > 0)
      line += (line.empty() ? "" : ", ") + std::to_string(count.get<int>()) + " " + name;
  return std::to_string(counts.value("kernels", 0)) + " kernels: " + (line.empty() ? "none" : line);
}

void addHeader(Page &page, const Json &report) {
  const Json &workloads = report["workloads"];
  if (workloads.size() == 1 && !fieldText(workloads[0], "description").empty())
    page.paragraph(fieldText(workloads[0], "description"));
  const double budget = report.value("budget_seconds", 0.0);
  page.facts(
      {{"Outcome", countsText(report["counts"])},
       {"Time", durationText(report.value("seconds", 0.0)) +
                    (report.value("exhaustive", false) ? ", every candidate measured to the end" : "") +
                    (budget > 0 ? " of a budget of " + durationText(budget) : ", no budget for the whole")},
       {"Database", fieldText(report, "cache")},
       {"Date", fieldText(report, "date")},
       {"Version", fieldText(report, "version") + ", source " + fieldText(report, "source")},
       {"Compiler", shortId(fieldText(report, "compiler"))},
       {"Processor", fieldText(report, "processor") + ", " + std::to_string(report.value("cores", 0)) + " cores"}});
  if (report.value("interrupted", false))
    page.warning("The run was interrupted. What is missing is tuned by running it again.");
  if (workloads.size() > 1) {
    page.subheading("Workloads");
    Table table({{"workload"}, {"what it is"}, {"outcome"}, {"shared with others", true}});
    for (const Json &workload : workloads)
      table.add({fieldText(workload, "name"), fieldText(workload, "description"), countsText(workload["counts"]),
                 std::to_string(workload.value("shared", 0))});
    page.add(table);
  }
  for (const Json &device : report["devices"]) {
    page.subheading(fieldText(device, "device"));
    std::vector<std::pair<std::string, std::string>> facts;
    std::string names;
    for (const Json &name : device["names"])
      names += (names.empty() ? "" : ", ") + name.get<std::string>();
    facts.emplace_back("Used as", names);
    for (const auto &[name, value] : device["facts"].items())
      if (name != "key" && value.is_string())
        facts.emplace_back(name, value.get<std::string>());
    for (const auto &[dtype, roof] : device["roofs"].items())
      facts.emplace_back("Roof, " + dtype, report::numberText(roof.value("tflops", 0.0)) + " TFLOP/s, " +
                                               report::numberText(roof.value("terabytes_per_second", 0.0)) + " TB/s");
    page.facts(facts);
  }
}

void addThresholds(Page &page, const Json &thresholds) {
  if (thresholds.empty())
    return;
  page.heading("Thresholds");
  page.paragraph(
      "From which length on, or up to which, another way to compute is taken, and how many programs share the "
      "keys of decode where the rule's number does not do. They are measured by nsa bench thresholds; never "
      "is an answer too.");
  Table table({{"threshold"}, {"for"}, {"is", true}, {"measured", true}});
  for (const Json &threshold : thresholds)
    table.add({fieldText(threshold, "name"), fieldText(threshold, "family"),
               threshold.value("never", false) ? "never" : std::to_string(threshold.value("threshold", 0)),
               std::to_string(threshold.value("measured", 0))});
  page.add(table);
}

void addCrossovers(Page &page, const Json &crossovers) {
  if (crossovers.empty())
    return;
  page.heading("Against dense attention");
  page.paragraph("The whole forward pass and dense causal attention of the same heads, measured in turns at growing "
                 "lengths until the forward pass was the faster one at two in a row. This is told and never applied: "
                 "the two compute different things.");
  Table answers({{"heads"}, {"type"}, {"batch", true}, {"nsa is the faster one"}, {"status"}});
  Table times({{"heads"}, {"type"}, {"tokens", true}, {"nsa ms", true}, {"dense ms", true}, {"dense / nsa", true}});
  for (const Json &crossover : crossovers) {
    answers.add({fieldText(crossover, "heads"), fieldText(crossover, "dtype"),
                 std::to_string(crossover.value("batch", 0)),
                 crossover.contains("error") ? fieldText(crossover, "error") : fieldText(crossover, "text"),
                 fieldText(crossover, "status")},
                crossover.contains("error") ? Table::Tone::kBad : Table::Tone::kPlain);
    for (const Json &at : crossover["times"]) {
      const double nsa = at.value("nsa_ms", 0.0), dense = at.value("dense_ms", 0.0);
      times.add({fieldText(crossover, "heads"), fieldText(crossover, "dtype"), std::to_string(at.value("tokens", 0)),
                 report::numberText(nsa), report::numberText(dense), report::numberText(dense / nsa)},
                nsa < dense ? Table::Tone::kGood : Table::Tone::kPlain);
    }
  }
  page.add(answers);
  if (!times.isEmpty())
    page.addFolded("The times", times);
}

// Kernels that failed of the same, in one row.
void addFailures(Page &page, const Json &kernels) {
  Table failed({{"kernels"}, {"device"}, {"why"}});
  std::map<std::pair<std::string, std::string>, std::string> failures; // by device and text
  Table rejected({{"kernel"}, {"template"}, {"config"}, {"outcome"}, {"why"}});
  for (const Json &kernel : kernels) {
    if (kernel.contains("error")) {
      std::string &problems = failures[{fieldText(kernel, "device"), fieldText(kernel, "error")}];
      problems += (problems.empty() ? "" : "; ") + fieldText(kernel, "problem");
    }
    if (!kernel.contains("evidence"))
      continue;
    for (const Json &candidate : kernel["evidence"])
      if (const std::string outcome = fieldText(candidate, "outcome"); outcome == "rejected" || outcome == "failed")
        rejected.add({fieldText(kernel, "problem"), fieldText(candidate, "template"), fieldText(candidate, "config"),
                      outcome, fieldText(candidate, "detail")});
  }
  for (const auto &[what, problems] : failures)
    failed.add({problems, what.first, what.second}, Table::Tone::kBad);
  if (failed.isEmpty() && rejected.isEmpty())
    return;
  page.heading("What did not work");
  if (!failed.isEmpty())
    page.add(failed);
  if (!rejected.isEmpty()) {
    page.paragraph("Candidates that did not compile, or whose result differed from the reference and that were "
                   "therefore never measured. The kernels they were tried for have other winners.");
    page.addFolded("Candidates that were rejected or failed", rejected);
  }
}

std::string callText(const Json &kernel) {
  const int page = kernel.value("page_size", 0);
  return fieldText(kernel, "call") + " " + fieldText(kernel, "dtype") + " " +
         (fieldText(kernel, "call") == "decode" ? page ? "pages of " + std::to_string(page) : "no pages"
                                                : fieldText(kernel, "layout"));
}

// "12.3 TFLOP/s", or bytes where nothing is multiplied.
std::string rateText(const Json &kernel) {
  if (!kernel.contains("timed") || !kernel.contains("winner") || kernel["winner"].value("milliseconds", 0.0) <= 0)
    return "-";
  const double seconds = kernel["winner"].value("milliseconds", 0.0) * 1e-3;
  const double flops = kernel["timed"].value("flops", 0.0), bytes = kernel["timed"].value("bytes", 0.0);
  return flops > 0 ? report::numberText(flops / seconds * 1e-12) + " TFLOP/s"
                   : report::numberText(bytes / seconds * 1e-9) + " GB/s";
}

void addWinners(Page &page, const Json &kernels) {
  page.heading("Winners");
  page.paragraph("Default is the compiler's best guess. Ratios come from interleaved rounds of one session, so they "
                 "are not always the quotient of the two medians. A tie: another candidate may be as fast, and a "
                 "second session may name it. Times are of the part of the call that the column `timed` names, and of "
                 "all of it where that is empty. The speed counts useful work alone.");
  Table table({{"heads"},
               {"call"},
               {"batch", true},
               {"tokens", true},
               {"part"},
               {"default ms", true},
               {"tuned ms", true},
               {"timed", false, "where not all of the call was"},
               {"ratio", true},
               {"speed", true},
               {"candidates", true, "measured / rejected / failed / pruned"},
               {"status"},
               {"winner"}});
  for (const Json &kernel : kernels) {
    if (!kernel.value("has_choices", true))
      continue;
    const bool hasWinner = kernel.contains("winner");
    const Json winner = kernel.value("winner", Json::object()), counts = kernel.value("candidates", Json::object());
    const double time = winner.value("milliseconds", 0.0), ratio = winner.value("ratio_to_default", 0.0);
    std::string many;
    for (const char *name : {"measured", "rejected", "failed", "pruned"})
      many += (many.empty() ? "" : " / ") + std::to_string(counts.value(name, 0));
    const Table::Tone tone = time > 0 && ratio < 0.9    ? Table::Tone::kGood
                             : hasWinner                ? Table::Tone::kPlain
                             : kernel.contains("error") ? Table::Tone::kBad
                                                        : Table::Tone::kQuiet;
    table.add({fieldText(kernel, "heads"), callText(kernel), std::to_string(kernel.value("batch", 0)),
               std::to_string(kernel.value("seqlen_k", 0)), fieldText(kernel, "role"),
               kernel.contains("default") ? report::numberText(kernel["default"].value("milliseconds", 0.0)) : "-",
               time > 0 ? report::numberText(time) : "-", time > 0 ? fieldText(kernel, "cut") : "-",
               time > 0 ? formatNumber("%.3f", ratio) : "-", rateText(kernel), hasWinner ? many : "-",
               fieldText(kernel, "status") + (hasWinner && kernel.value("tie", false) ? ", tie" : "") +
                   (hasWinner && kernel.value("budget_exhausted", false) ? ", out of budget" : ""),
               hasWinner ? fieldText(winner, "template") + " " + fieldText(winner, "config") : "-"},
              tone);
  }
  page.add(table);
}

} // namespace

std::string tuneHtml(const Json &report) {
  Page page("nsa tune: " + fieldText(report, "workload"));
  addHeader(page, report);
  const Json &kernels = report["kernels"];
  addFailures(page, kernels);
  for (const Json &device : report["devices"]) {
    const TunePlots plots = tunePlots(report, fieldText(device, "device"));
    const std::string of = report["devices"].size() > 1 ? " on " + fieldText(device["facts"], "name") : "";
    if (!plots.roofline.empty()) {
      page.heading("Roofline" + of);
      page.add(plots.roofline);
    }
    if (!plots.times.empty()) {
      page.heading("Time against length" + of);
      page.paragraph(
          "The fastest configuration of each template at each length. Hollow points stand at the length of the call, "
          "and were timed on fewer queries, keys or sequences, so that one run stays short: their texts say on how "
          "many. Plots of a prompt with such points show the time of one query.");
      page.add(plots.times);
    }
  }
  addThresholds(page, report["thresholds"]);
  addCrossovers(page, report["crossovers"]);
  addWinners(page, kernels);
  return page.html();
}

} // namespace nsa::tools
