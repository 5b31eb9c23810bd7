#include "tools/nsa/pages/verb.h"

#include "tools/nsa/command/command.h"

#include <sstream>
#include <utility>

namespace nsa::tools {

namespace {

// The parser keeps no list of a set's members, but names them in the error for a word that is no member: "{a,b}", or
// " must be one of a, b" (namedValue).
std::vector<std::string> valuesOf(CLI::Option &option) {
  std::vector<std::string> values;
  for (int i = 0;; ++i) {
    std::string answer;
    try {
      std::string word = "?";
      answer = (*option.get_validator(i))(word);
    } catch (const CLI::OptionNotFound &) {
      return values; // that was the last one
    } catch (const CLI::ValidationError &) {
      continue; // it is no set
    }
    const size_t brace = answer.find('{'), names = answer.find(kNamesFollow);
    if (names != std::string::npos)
      answer = answer.substr(names + kNamesFollow.size());
    else if (brace != std::string::npos)
      answer = answer.substr(brace + 1, answer.find('}', brace) - brace - 1);
    else
      continue;
    std::istringstream members(answer);
    for (std::string member; std::getline(members >> std::ws, member, ',');)
      values.push_back(member);
  }
}

Option optionOf(CLI::Option &option) {
  Option made;
  for (const std::string &name : option.get_snames())
    made.names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    made.names.push_back("--" + name);
  made.description = option.get_description();
  if (option.get_items_expected_max() > 0) {
    made.valueName = option.get_type_name();
    if (const size_t rule = made.valueName.find(':'); rule != std::string::npos)
      made.valueName.resize(rule); // the help's "N:POSITIVE"
    if (made.valueName.empty())
      made.valueName = "VALUE";
    made.values = valuesOf(option);
  }
  made.mayRepeat = option.get_items_expected_max() > 1;
  made.mayLackValue = option.get_items_expected_min() == 0;
  return made;
}

} // namespace

std::string join(const std::vector<std::string> &words, const std::string &between) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : between) + word;
  return text;
}

Verb Verb::of(CLI::App &app, std::vector<std::string> above) {
  Verb verb;
  verb.words = std::move(above);
  verb.help = app.help(verb.path());
  verb.words.push_back(app.get_name());
  verb.description = app.get_description();
  verb.footer = app.get_footer();
  for (CLI::Option *option : app.get_options()) {
    Option made = optionOf(*option);
    if (option->get_positional()) {
      made.valueName = option->get_name(true);
      if (made.valueName == "VERB")
        for (const CLI::App *each : app.get_parent()->get_subcommands([](const CLI::App *) { return true; }))
          made.values.push_back(each->get_name());
      verb.places.push_back(std::move(made));
    } else {
      verb.options.push_back(std::move(made));
    }
  }
  for (CLI::App *below : app.get_subcommands([](const CLI::App *) { return true; }))
    verb.verbs.push_back(of(*below, verb.words));
  return verb;
}

std::vector<const Verb *> Verb::all() const {
  std::vector<const Verb *> all = {this};
  for (const Verb &verb : verbs)
    for (const Verb *below : verb.all())
      all.push_back(below);
  return all;
}

} // namespace nsa::tools
