#include "tools/nsa/command/usage_error.h"

#include "runtime/json/nearest_name.h"

#include <string_view>

namespace nsa::tools {
namespace {

// ": did you mean list?", or nothing where no name is near.
std::string suggestion(const std::string &word, const std::vector<std::string> &names) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view nearest = nearestName(word, known);
  return nearest.empty() ? "" : ": did you mean " + std::string(nearest) + "?";
}

std::vector<std::string> optionsOf(const CLI::App &verb) {
  std::vector<std::string> names;
  for (const CLI::Option *option : verb.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

// Names all words in the order in which they were given. The text of the parser's library reverses them.
std::string unexpected(const CLI::App &verb, const std::vector<std::string> &words) {
  std::string list;
  for (const std::string &word : words)
    list += (list.empty() ? "'" : ", '") + word + "'";
  // The value of a mistyped option is unexpected too, so the first word decides.
  const bool isOption = words.front().starts_with("--");
  return (words.size() == 1 ? "unexpected argument " : "unexpected arguments ") + list +
         (isOption ? suggestion(words.front().substr(0, words.front().find('=')), optionsOf(verb)) : "");
}

} // namespace

std::string verbPath(const CLI::App &verb) {
  return (verb.get_parent() ? verbPath(*verb.get_parent()) + " " : "") + verb.get_name();
}

std::string helpOf(const CLI::App &verb) {
  return verb.get_formatter()->make_help(&verb, verbPath(verb), CLI::AppFormatMode::Normal);
}

std::string unknownVerb(const CLI::App &verb, const std::string &word) {
  std::vector<std::string> names;
  for (const CLI::App *below : verb.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(below->get_name());
  return "unknown verb '" + word + "'" + (verb.get_parent() ? " of `" + verbPath(verb) + "`" : "") +
         suggestion(word, names);
}

UsageError usageErrorOf(const CLI::App &app, const CLI::ParseError &error) {
  const CLI::App *verb = &app;
  while (true) {
    const std::vector<std::string> words = verb->remaining();
    const bool needsVerb = verb->get_require_subcommand_min() > 0;
    const std::vector<CLI::App *> below = verb->get_subcommands();
    const std::string more = "\nRun `" + verbPath(*verb) + " --help`.";
    if (needsVerb && !words.empty())
      return {"",
              (words.front().starts_with("-") ? unexpected(*verb, words) : unknownVerb(*verb, words.front())) + more};
    if (needsVerb && below.empty())
      return {helpOf(*verb), "name a verb of `" + verbPath(*verb) + "`"};
    // An unexpected word is told before a missing one, because it may be the missing one, mistyped.
    if (!words.empty())
      return {"", unexpected(*verb, words) + more};
    if (below.empty())
      return {"", error.what() + more};
    verb = below.front();
  }
}

} // namespace nsa::tools
