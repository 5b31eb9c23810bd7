// `nsa validate`: everything that tells whether this machine computes what it should, into one folder with a page. Any
// step that fails fails the run.
#include "tools/nsa/command/command.h"
#include "tools/nsa/files/file_io.h"
#include "tools/nsa/validate_steps.h"
#include "tools/support/number_option.h"
#include "tools/support/progress.h"

#include <cstdio>

namespace nsa::tools {
namespace {

// Small enough for a CPU, with groups and more blocks than a query selects.
constexpr const char *kDefaultConfig =
    R"({"dtype": "bf16", "query_heads": 8, "kv_heads": 2, "qk_dim": 64, "v_dim": 64})";

struct ValidateFlags {
  ValidateChoice choice;
  std::string configPath;
  EngineFlags engine;
  bool json = false;
};

Status readConfig(ValidateFlags &flags) {
  flags.choice.config = kDefaultConfig;
  if (flags.configPath.empty())
    return Status::ok();
  NSA_ASSIGN_OR_RETURN(ConfigText text, ConfigText::read(flags.configPath));
  NSA_ASSIGN_OR_RETURN(ConfigFile config, ConfigFile::parse(text.name, text.text));
  if (config.has("branches"))
    return Status::invalid("branches", "in " + text.name, "must be left out: each branch is tried by itself");
  flags.choice.config = std::move(text.text);
  return Status::ok();
}

Status validate(ValidateFlags &flags) {
  NSA_RETURN_IF_ERROR(readConfig(flags));
  ValidateChoice &choice = flags.choice;
  choice.device = flags.engine.settings.device;
  choice.cache = flags.engine.settings.cachePath;
  std::vector<ValidateStep> steps = validateSteps(choice);
  {
    Progress progress;
    NSA_RETURN_IF_ERROR(runSteps(choice, steps, [&](const ValidateStep &step, bool done) {
      if (!done) {
        progress.step(step.name);
        return;
      }
      progress.step("");
      if (!flags.json)
        std::printf("%-6s %6.1f s  %-14s %s%s%s\n", step.ok ? "ok" : "FAILED", step.seconds, step.name.c_str(),
                    step.output.c_str(), step.trouble.empty() ? "" : ": ", step.trouble.c_str());
      std::fflush(stdout);
    }));
  }
  const std::string page = choice.file(kValidatePage);
  NSA_RETURN_IF_ERROR(writeText(page, validateHtml(choice, steps)));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string failed;
  for (const ValidateStep &step : steps) {
    list.push_back({{"step", step.name},
                    {"ok", step.ok},
                    {"seconds", step.seconds},
                    {"file", step.output},
                    {"trouble", step.trouble}});
    if (!step.ok)
      failed += (failed.empty() ? "" : ", ") + step.name;
  }
  const nlohmann::ordered_json summary = {{"ok", failed.empty()}, {"folder", choice.folder}, {"steps", list}};
  NSA_RETURN_IF_ERROR(writeText(choice.file(kValidateSummary), summary.dump(2) + "\n"));
  if (flags.json)
    printJson(summary);
  else
    std::printf("The page: %s\n", page.c_str());
  if (!failed.empty())
    return Status::error(ErrorCode::kInternal, "steps that failed: " + failed,
                         "each one's log lies beside its file in " + choice.folder);
  return Status::ok();
}

} // namespace

void addValidateCommand(CLI::App &app, Action &action) {
  auto [verb, flags] = addVerb<ValidateFlags>(
      app, action, "validate", "Check this machine from end to end, into one folder with a page", validate);
  verb.footer("It looks at environment, routing, each branch, the whole and its gradient against the reference, "
              "selection, decoding and thresholds.");
  addOption(verb, "--output DIR", flags.choice.folder, "Folder that receives everything")->required();
  addConfig(verb, flags.configPath,
            "heads and what else a specification has, without branches (default: 8/2 heads of 64, bf16)");
  addOption(verb, "--tokens N", flags.choice.tokens, "Tokens of the sequence that is checked", wholeWithin(64, 1 << 20))
      ->capture_default_str();
  addOption(verb, "--samples N", flags.choice.samples, "Samples of each measurement", wholeWithin(1, 10000))
      ->capture_default_str();
  flags.engine.addDevice(verb);
  flags.engine.addCache(verb);
  addOption(verb, "--miss POLICY", flags.choice.missPolicy,
            "What a missing kernel means to the checks: default, fail, tune or background (default: NSA_MISS, else "
            "default)",
            CLI::IsMember({"default", "fail", "tune", "background"}));
  addJsonFlag(verb, flags.json);
}

} // namespace nsa::tools
