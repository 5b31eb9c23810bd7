// `nsa help` lists the verbs. `nsa help VERB` prints the help of one verb.
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

} // namespace

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

} // namespace nsa::tools
