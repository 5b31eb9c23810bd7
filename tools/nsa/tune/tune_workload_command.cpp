// `nsa tune WORKLOAD`: tunes, compiles or plans workloads, and writes the reports.
#include "autotune/workload/tune_compile.h"
#include "autotune/workload/tune_record.h"
#include "tools/nsa/command/interruption.h"
#include "tools/nsa/files/file_io.h"
#include "tools/nsa/files/find_workload.h"
#include "tools/nsa/tune/tune_devices.h"
#include "tools/nsa/tune/tune_report.h"
#include "tools/nsa/tune/tune_verbs.h"
#include "tools/support/progress.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace nsa::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNamedFailures = 10;

Status writeJson(const WorkloadFlags &flags, const Json &json) {
  return flags.json ? tools::writeJson(*flags.json, json) : Status::ok();
}

bool printsText(const WorkloadFlags &flags) { return !flags.json || !flags.json->empty(); }

void printLine(const std::string &line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout); // a run may be killed
}

// "28 kernels: 3 tuned, 25 stored before"
std::string summary(const Json &counts) {
  constexpr std::pair<const char *, const char *> kWords[] = {
      {"tuned", "tuned"},   {"tuned elsewhere", "tuned by another process"},
      {"made", "compiled"}, {"stored", "stored before"},
      {"failed", "failed"}, {"left", "left"}};
  std::string line;
  for (const auto &[name, word] : kWords)
    if (const int count = counts.value(name, 0); count > 0)
      line += (line.empty() ? "" : ", ") + std::to_string(count) + " " + word;
  return std::to_string(counts.value("kernels", 0)) + " kernels: " + line;
}

// Each kernel that failed, by name: an exit code alone would not say which.
Status failures(const Json &report) {
  std::string names;
  size_t count = 0;
  for (const Json &kernel : report["kernels"])
    if (kernel.value("status", "") == "failed" && ++count <= kNamedFailures)
      names += "\n  " + kernel.value("problem", "") + ": " + kernel.value("error", "");
  if (count > kNamedFailures)
    names += "\n  and " + std::to_string(count - kNamedFailures) + " more";
  for (const Json &crossover : report.value("crossovers", Json::array()))
    if (crossover.contains("error"))
      return Status::error(ErrorCode::kUnavailable,
                           "the crossover with dense attention of " + crossover.value("heads", "") +
                               " was not measured: " + crossover.value("error", "") +
                               (count ? "; and " + std::to_string(count) + " kernels failed:" + names : ""));
  if (count == 0)
    return Status::ok();
  return Status::error(ErrorCode::kUnavailable, std::to_string(count) + " of " +
                                                    std::to_string(report["kernels"].size()) +
                                                    " kernels failed:" + names);
}

// The library names options by their fields.
Status ofCommandLine(const Status &status) {
  ErrorInfo info = status.error();
  if (info.field == kOperatorsField || info.field == kDeviceField)
    info.field = "--" + info.field;
  return Status(std::move(info));
}

// What a run tells, as lines: one on stdout for each kernel that is done, and one on a terminal's stderr that says how
// far the run is. Both usually stand on the same terminal, so the second is erased before the first is written.
class Narrator {
public:
  Narrator(const std::string &verb, const std::vector<Workload> &workloads, const WorkloadFlags &flags)
      : title(verb + " " + titleOf(workloads)), printsLines(printsText(flags)) {}

  TuneCallback callback(std::string (*lineOf)(const TuneProgress &)) {
    return [this, lineOf](const TuneProgress &told) {
      if (told.record && printsLines) {
        progress.step("");
        printLine(lineOf(told));
      }
      if (!told.isCrossover)
        progress.step(title + ": " + std::to_string(told.done) + " of " + std::to_string(told.total) + " kernels",
                      told.secondsLeft);
      else
        progress.step(told.record ? "" : "crossover with dense attention: " + told.what);
      return !Interruption::wanted();
    };
  }

private:
  const std::string title;
  const bool printsLines;
  const Interruption interruption;
  Progress progress{STDERR_FILENO, 0};
};

std::string tunedLine(const TuneProgress &told) {
  const Json &record = *told.record;
  if (told.isCrossover)
    return "crossover with dense attention, " + told.what + ": " + record.value("text", "");
  std::string line = "[" + std::to_string(told.done) + "/" + std::to_string(told.total) + "] " + told.what + ": ";
  if (record.contains("error"))
    return line + "failed: " + record["error"].get<std::string>();
  if (record.value("status", "") == "left")
    return line + "left: its share of the budget ended before anything was measured";
  if (!record.contains("winner"))
    return line + "made";
  const Json &winner = record["winner"];
  const std::string cut = record.value("cut", "");
  line += millisecondsText(winner.value("milliseconds", 0.0)) + (cut.empty() ? "" : " (" + cut + ")") +
          formatNumber(", %.3f of the default, ", winner.value("ratio_to_default", 0.0)) +
          winner.value("template", "") + " " + winner.value("config", "");
  if (record.value("tie", false))
    line += " (a tie)";
  return line;
}

std::string compiledLine(const TuneProgress &told) {
  const Json &record = *told.record;
  const std::string error = record.value("error", "");
  return "[" + std::to_string(told.done) + "/" + std::to_string(told.total) + "] " + record.value("target", "") + " " +
         told.what + ": " +
         (error.empty()
              ? record.value("status", "") + ", " + record.value("template", "") + " " + record.value("config", "")
              : "failed: " + error);
}

TuneLimits limitsOf(const WorkloadFlags &flags) {
  return {.budgetSeconds = flags.budgetSeconds, .kernelSeconds = flags.engine.tuneBudgetSeconds, .again = flags.again};
}

Status plan(const std::vector<Workload> &workloads, const WorkloadFlags &flags) {
  NSA_ASSIGN_OR_RETURN(const EngineOptions options, resolvedOptions(flags.engine));
  NSA_ASSIGN_OR_RETURN(TuneEnvironment environment, TuneEnvironment::of(options));
  std::vector<TunePlace> places;
  for (const std::string &target : flags.targets) {
    Result<std::vector<TunePlace>> some = placesOfTarget(target, workloads, environment);
    if (!some)
      return ofCommandLine(some.status());
    places.insert(places.end(), some->begin(), some->end());
  }
  if (flags.targets.empty()) {
    NSA_ASSIGN_OR_RETURN(std::vector<OpenDevice> devices, openDevices(flags.engine.device, flags.engine));
    for (const OpenDevice &device : devices)
      if (std::ranges::find(places, device.key(), &TunePlace::key) == places.end())
        places.push_back({device.key(), device.isGpu(), device.runsStep()});
  }
  const Result<TunePlan> planned = planWorkloads(workloads, environment, places, limitsOf(flags));
  if (!planned)
    return ofCommandLine(planned.status());
  if (printsText(flags)) {
    for (const Json &kernel : planned->report["kernels"])
      std::printf("%-8s %s  (%s)\n", kernel.value("do", "").c_str(), kernel.value("problem", "").c_str(),
                  kernel.value("for", "").c_str());
    for (const Json &crossover : planned->report["crossovers"])
      std::printf("%-8s crossover with dense attention  (%s)\n", crossover.value("do", "").c_str(),
                  crossover.value("for", "").c_str());
    if (!flags.operators.empty())
      std::printf("kernels of %s alone\n", operatorsText(workloads.front().operators).c_str());
    if (workloads.size() > 1)
      for (const Json &workload : planned->report["workloads"])
        std::printf("%s: %d kernels, %d of them shared with others\n", workload.value("name", "").c_str(),
                    workload.value("kernels", 0), workload.value("shared", 0));
    for (const Json &device : planned->report["devices"])
      std::printf("%s: %d to measure in %d families, %d to compile alone, %d stored; about %s, at most %s\n",
                  device.value("device", "").c_str(), device.value("measure", 0), device.value("families", 0),
                  device.value("make", 0), device.value("stored", 0),
                  durationText(device.value("seconds_about", 0.0)).c_str(),
                  durationText(device.value("seconds_at_most", 0.0)).c_str());
  }
  return writeJson(flags, planned->report);
}

Ending compile(const std::vector<Workload> &workloads, const WorkloadFlags &flags) {
  NSA_ASSIGN_OR_RETURN(EngineOptions options, resolvedOptions(flags.engine));
  Result<Json> report = [&] {
    Narrator narrator("compiling", workloads, flags);
    return compileWorkloads(workloads, options,
                            {.targets = flags.targets, .again = flags.again, .tell = narrator.callback(compiledLine)});
  }();
  if (!report)
    return ofCommandLine(report.status());
  (*report)["version"] = nsa_version();
  (*report)["source"] = nsa_source_id();
  if (printsText(flags))
    printText("%s\n%s", summary((*report)["counts"]).c_str(),
              placesText(report->value("cache", ""), flags.json.value_or(""), "").c_str());
  NSA_RETURN_IF_ERROR(writeJson(flags, *report));
  NSA_RETURN_IF_ERROR(failures(*report));
  return (*report)["counts"].value("left", 0) > 0 ? ExitCode::kLeft : ExitCode::kDone;
}

Ending tune(const std::vector<Workload> &workloads, const WorkloadFlags &flags) {
  NSA_ASSIGN_OR_RETURN(std::vector<OpenDevice> devices, openDevices(flags.engine.device, flags.engine));
  NSA_ASSIGN_OR_RETURN(EngineOptions options, resolvedOptions(flags.engine));
  options.logLevel = LogLevel::kOff; // the engines tell of files that cannot be used
  NSA_ASSIGN_OR_RETURN(TuneEnvironment environment, TuneEnvironment::of(options));
  Result<TuneOutcome> outcome = [&] {
    Narrator narrator("tuning", workloads, flags);
    return runWorkloads(
        workloads, environment, tuneDevices(devices),
        {.limits = limitsOf(flags), .tell = narrator.callback(tunedLine), .describeTimed = addTimedWork});
  }();
  if (!outcome)
    return ofCommandLine(outcome.status());
  Json &report = outcome->report;
  const TuneCounts &counts = outcome->counts;
  addMachine(report, devices, flags.json || !flags.reportPath.empty());
  const bool isLeft =
      counts[TuneState::kLeft] > 0 || std::ranges::any_of(report["crossovers"], [](const Json &crossover) {
        return crossover.value("status", "") == "left";
      });
  if (printsText(flags)) {
    if (workloads.size() > 1)
      for (const Json &workload : report["workloads"])
        std::printf("%s: %s; %d shared with others\n", workload.value("name", "").c_str(),
                    summary(workload["counts"]).c_str(), workload.value("shared", 0));
    std::printf("%s, in %s\n", summary(report["counts"]).c_str(), durationText(outcome->seconds).c_str());
    for (const Json &crossover : report["crossovers"])
      std::printf("Crossover with dense attention, %s %s: %s\n", crossover.value("heads", "").c_str(),
                  crossover.value("dtype", "").c_str(), crossover.value("text", "").c_str());
    const bool isAllStored = std::ranges::all_of(
        report["crossovers"], [](const Json &crossover) { return crossover.value("status", "") == "stored"; });
    if (isAllStored && counts[TuneState::kStored] == counts.kernels())
      std::printf("Nothing was measured: all of it is stored, by this compiler. --again measures anew.\n");
    if (isLeft)
      std::printf("%s: the same command goes on from here.\n",
                  outcome->isStopped ? "Interrupted" : "The budget is spent");
  }
  NSA_RETURN_IF_ERROR(writeJson(flags, report));
  if (!flags.reportPath.empty())
    NSA_RETURN_IF_ERROR(writeText(flags.reportPath, tuneHtml(report)));
  if (printsText(flags))
    printText("%s", placesText(report.value("cache", ""), flags.json.value_or(""), flags.reportPath).c_str());
  NSA_RETURN_IF_ERROR(failures(report));
  return isLeft ? ExitCode::kLeft : ExitCode::kDone;
}

} // namespace

std::string placesText(const std::string &database, const std::string &json, const std::string &html) {
  const bool isKept = database != ":memory:";
  std::string text = "Database: " + (isKept ? database : "none, as it was in memory alone") + "\n";
  if (!json.empty())
    text += "JSON report: " + json + "\n";
  if (!html.empty())
    text += "Report: " + html + "\n";
  return text;
}

Ending tuneWorkloads(const WorkloadFlags &flags) {
  NSA_ASSIGN_OR_RETURN(std::vector<Workload> workloads, findWorkloads(flags.workloads, workloadFolder()));
  if (const Status status = limitTo(flags.operators, workloads); !status.isOk())
    return ofCommandLine(status);
  for (Workload &workload : workloads) {
    workload.direction = flags.direction;
    for (const std::string &warning : workload.warnings)
      printWarning(warning);
  }
  if (flags.dryRun)
    return plan(workloads, flags);
  return flags.compileOnly ? compile(workloads, flags) : tune(workloads, flags);
}

Status listWorkloads() {
  const std::string folder = workloadFolder();
  for (const std::string &name : readyWorkloads(folder)) {
    NSA_ASSIGN_OR_RETURN(Workload workload, findWorkload(name, folder));
    std::printf("%-20s %s\n", name.c_str(), workload.description.c_str());
  }
  return Status::ok();
}

} // namespace nsa::tools
