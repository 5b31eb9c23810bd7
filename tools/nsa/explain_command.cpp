// `nsa explain`: what would run for a spec on this machine, and why. Compiles and stores nothing.
#include "tools/nsa/command/program_flags.h"

namespace nsa::tools {
namespace {

constexpr size_t kShownCandidates = 10;

struct ExplainFlags {
  SpecFlags spec;
  ProgramFlags program;
  EngineFlags engine;
  bool json = false;
};

// ": dense up to 256 keys"; "" where no length decides.
std::string thresholdText(const nlohmann::json &route) {
  if (!route.contains("threshold_way"))
    return "";
  const nlohmann::json &keys = route["threshold_seqlen_k"];
  return ": " + route.value("threshold_way", "") +
         (keys.is_null()                                ? " never"
          : route.value("threshold_side", "") == "from" ? " from " + keys.dump() + " keys on"
                                                        : " up to " + keys.dump() + " keys");
}

void printExplanation(const nlohmann::json &report) {
  if (const std::string part = report.value("part", ""); !part.empty())
    printText("part       %s\n", part.c_str());
  printText("problem    %s\ndevice     %s\n", report.value("problem", "").c_str(), report.value("device", "").c_str());
  printText("would      %s (miss policy: %s%s)\n", report.value("would", "").c_str(),
            report.value("miss_policy", "").c_str(),
            report.value("tunes_in_background", false) ? "; a thread tunes meanwhile" : "");
  if (report.contains("variant"))
    printText("variant    %s %s, %s: %s\n", report.value("variant", "").c_str(), report.value("config", "").c_str(),
              report.value("step", "").c_str(), report.value("why", "").c_str());
  if (report.contains("route")) {
    const nlohmann::json &route = report["route"];
    printText("route      %s, not %s (%s%s): %s\n", route.value("name", "").c_str(), route.value("other", "").c_str(),
              route.value("source", "").c_str(), thresholdText(route).c_str(), route.value("why", "").c_str());
  }
  const nlohmann::json &database = report["database"];
  const std::string source = database.value("source", ""), place = database.value("place", "");
  if (!database.value("found", false))
    printText("stored     no kernel for it; looked in %s\n", place.c_str());
  else if (const std::string trouble = database.value("trouble", ""); !trouble.empty())
    printText("%-10s %s holds %.12s, which cannot serve: %s\n", source.c_str(), place.c_str(),
              database.value("content", "").c_str(), trouble.c_str());
  else
    printText("%-10s %s holds %.12s: %s %s, %s%s\n", source.c_str(), place.c_str(),
              database.value("content", "").c_str(), database.value("template", "").c_str(),
              database.value("config", "").c_str(), database.value("tuned", false) ? "measured" : "not measured",
              database.value("cut", "").empty() ? "" : (" (" + database.value("cut", "") + ")").c_str());
  if (const std::string trouble = report.value("candidates_trouble", ""); !trouble.empty())
    printText("candidates none: %s\n", trouble.c_str());
  const nlohmann::json &candidates = report["candidates"];
  for (size_t i = 0; i < candidates.size() && i < kShownCandidates; ++i)
    printText("%s%12.6g  %s %s\n", i ? "           " : "candidates ", candidates[i].value("predicted_cost", 0.0),
              candidates[i].value("template", "").c_str(), candidates[i].value("config", "").c_str());
  if (candidates.size() > kShownCandidates)
    printText("           and %zu more (--json lists all)\n", candidates.size() - kShownCandidates);
}

// An error if any of these kernels of a plan or of a program cannot be had.
Status failureOf(const std::vector<nlohmann::json> &kernels, bool isProgram) {
  std::string problems;
  for (const nlohmann::json &kernel : kernels)
    if (kernel.value("fails", false))
      problems += "\n  " + kernel.value("problem", "") + ": would " + kernel.value("would", "");
  return problems.empty()
             ? Status::ok()
             : Status::error(ErrorCode::kUnavailable,
                             std::string(isProgram ? "the program" : "a plan of this") + " would fail:" + problems);
}

Result<nlohmann::json> explanationOf(const ExplainFlags &flags) {
  if (flags.program.isGiven()) {
    NSA_ASSIGN_OR_RETURN(const ProgramRequest request, flags.program.request());
    NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(flags.engine.settings));
    return request.explain(engine.get());
  }
  NSA_ASSIGN_OR_RETURN(SpecFlags::Chosen chosen, flags.spec.resolve());
  NSA_ASSIGN_OR_RETURN(EngineHandle engine, createEngine(flags.engine.settings));
  return explain(engine.get(), chosen.spec, chosen.maxima);
}

Status explainWhat(const ExplainFlags &flags) {
  NSA_ASSIGN_OR_RETURN(nlohmann::json report, explanationOf(flags));
  const std::vector<nlohmann::json> kernels = kernelReports(report);
  if (flags.json)
    printJson(report);
  for (size_t i = 0; i < kernels.size() && !flags.json; ++i) {
    printText("%s", i ? "\n" : "");
    printExplanation(kernels[i]);
  }
  return failureOf(kernels, flags.program.isGiven());
}

} // namespace

void addExplainCommand(CLI::App &app, Action &action) {
  auto [verb, flags] = addVerb<ExplainFlags>(
      app, action, "explain", "Say what would run for a spec or a program and why, without compiling", explainWhat);
  verb.footer("The exit code is 1 where a plan or the program would fail.");
  flags.spec.add(verb);
  flags.engine.addDevice(verb);
  flags.engine.addCache(verb);
  flags.engine.addMiss(verb);
  addJsonFlag(verb, flags.json);
  flags.program.add(verb, {"--op", "--config", "--input", "--batch", "--seqlen-q", "--seqlen-k", "--tokens-q"});
}

} // namespace nsa::tools
