// `nsa tune`: measures the candidates of one spec on this machine and stores the winner.
#include "tools/nsa/command.h"
#include "tools/support/progress.h"

#include <cstdio>
#include <memory>

namespace nsa::tools {
namespace {

struct TuneFlags {
  SpecFlags spec;
  EngineFlags engine;
  bool json = false;
};

void printTable(const nlohmann::json &report) {
  std::printf("%s\non %s: %d compiled, %d measured, %d rejected in %s%s\n", report.value("problem", "").c_str(),
              report.value("device", "").c_str(), report.value("compiled", 0), report.value("measured", 0),
              report.value("rejected", 0), millisecondsText(report.value("milliseconds", 0.0)).c_str(),
              report.value("budget_exhausted", false) ? " (the budget ended it)" : "");
  std::printf("%-10s %12s %10s %7s  %s\n", "outcome", "median", "x default", "rounds", "candidate");
  for (const nlohmann::json &candidate : report["candidates"]) {
    if (candidate.value("outcome", "") == "pruned")
      continue;
    const double milliseconds = candidate.value("milliseconds", 0.0);
    char ratio[16] = "-";
    if (milliseconds > 0)
      std::snprintf(ratio, sizeof ratio, "%.3f", candidate.value("ratio_to_default", 0.0));
    const std::string detail = candidate.value("detail", "");
    std::printf("%-10s %12s %10s %7d  %s %s%s%s\n", candidate.value("outcome", "").c_str(),
                milliseconds > 0 ? millisecondsText(milliseconds).c_str() : "-", ratio, candidate.value("rounds", 0),
                candidate.value("template", "").c_str(), candidate.value("config", "").c_str(),
                detail.empty() ? "" : ": ", detail.c_str());
  }
  std::printf("%s", prunedText(report["candidates"]).c_str());
  if (report.value("tuned_elsewhere", false))
    std::printf("Another caller was tuning the same: this is its result.\n");
  if (report.value("tie", false))
    std::printf("Another candidate may be as fast as the winner: measuring again may choose that one.\n");
}

Status tuneSpec(const TuneFlags &flags) {
  Result<SpecFlags::Chosen> chosen = flags.spec.resolve();
  if (!chosen)
    return chosen.status();
  Result<EngineHandle> engine = createEngine(flags.engine.settings);
  if (!engine)
    return engine.status();
  Result<nlohmann::json> report = [&] {
    Progress progress;
    progress.step("tuning " + std::string(operatorName(chosen->spec.op)));
    return tune(engine->get(), chosen->spec, chosen->maxima);
  }();
  if (!report)
    return report.status();
  if (flags.json)
    printJson(*report);
  std::string trouble;
  const std::vector<nlohmann::json> kernels = kernelReports(*report);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!flags.json) {
      std::printf("%s", i ? "\n" : "");
      printTable(kernels[i]);
    }
    if (trouble.empty())
      trouble = kernels[i].value("store_trouble", "");
  }
  if (!trouble.empty())
    return Status::error(ErrorCode::kIoError, "the winner was not stored: " + trouble);
  return Status::ok();
}

} // namespace

void addTuneCommand(CLI::App &app, Action &action) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App *command = app.add_subcommand("tune", "Measure the candidates of one spec and store the winner");
  flags->spec.add(*command);
  flags->engine.addDevice(*command);
  flags->engine.addCache(*command);
  flags->engine.addTuneBudget(*command);
  command->add_flag("--json", flags->json, "Print a JSON report");
  command->callback([flags, &action] { action = [flags] { return tuneSpec(*flags); }; });
}

} // namespace nsa::tools
