#include "tools/nsa/command/command.h"

#include "tools/nsa/command/parser_texts.h"

#include <cstdio>

namespace nsa::tools {

namespace {

const CLI::App &findVerb(const CLI::App &app, const std::vector<std::string> &words) {
  const CLI::App *verb = &app;
  for (const std::string &word : words) {
    const auto found = verb->get_subcommands([&](const CLI::App *below) { return below->get_name() == word; });
    if (found.empty())
      throw CLI::ParseError(unknownVerb(*verb, word), CLI::ExitCodes::ArgumentMismatch);
    verb = found.front();
  }
  return *verb;
}

// `nsa help` lists the verbs. `nsa help VERB` prints the help of one verb.
void addHelpCommand(CLI::App &app, Action &action) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App *command = app.add_subcommand("help", "List the verbs, or say what one of them takes");
  command->add_option("VERB", *words, "The verb, as `run` or `cache list`")->type_name("");
  command->callback([&app, words, &action] {
    action = [text = helpOf(findVerb(app, *words))] {
      std::printf("%s", text.c_str());
      return Status::ok();
    };
  });
}

} // namespace

std::unique_ptr<CLI::App> makeCommandLine(Action &action) {
  auto app = std::make_unique<CLI::App>("Native sparse attention kernels that build themselves.", "nsa");
  app->set_version_flag("--version", std::string("nsa ") + nsa_version() + " (" + nsa_source_id() + ")",
                        "Print the version and the source it was built from");
  app->formatter(std::make_shared<OrderedHelp>()); // verbs inherit it
  app->require_subcommand(1);

  // The verbs are grouped by their purpose. The help and docs/cli.md have them in this order.
  using Add = void (*)(CLI::App &, Action &);
  const std::pair<const char *, std::vector<Add>> groups[] = {
      {"Run an operator", {addRunCommand, addGenerateCommand, addDumpSelectionCommand}},
      {"Make kernels and ship them", {addTuneCommand, addCompileCommand, addCacheCommand}},
      {"Write kernels", {addCheckCommand, addFmtCommand}},
      {"Look and check", {addExplainCommand, addDoctorCommand, addValidateCommand}},
      {"Measure", {addBenchCommand}},
      {"Help", {addHelpCommand}}};
  for (const auto &[group, verbs] : groups)
    for (const Add add : verbs) {
      add(*app, action);
      app->get_subcommands([](const CLI::App *) { return true; }).back()->group(group);
    }
  // Set last: verbs would inherit it.
  std::string footer = "Exit codes:\n";
  for (const auto &[code, meaning] : kExitCodes)
    footer += "  " + std::to_string(static_cast<int>(code)) + "  " + std::string(meaning) + "\n";
  app->footer(footer + "\n`nsa help VERB` says what a verb takes.");
  return app;
}

} // namespace nsa::tools
