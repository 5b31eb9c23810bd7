#include "tools/nsa/command/parser_texts.h"

#include "runtime/json/nearest_name.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace nsa::tools {
namespace {

constexpr size_t kMostColumns = 100;
constexpr size_t kDescription = 30; // the column in which the parser's library puts descriptions

// The column in which a broken line goes on. That is the column of the description, which stands at least two columns
// behind the name of an option or a verb. Without a description the line goes on four columns further in.
size_t continuationOf(const std::string &line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin != 2)
    return begin;
  const size_t gap = line.find("  ", begin);
  if (gap == std::string::npos && line[kDescription - 1] == ' ')
    return kDescription; // the name just fits
  const size_t text = gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
  return text < kMostColumns ? text : begin + 4;
}

std::string wrapped(const std::string &line) {
  const size_t indent = line.size() > kMostColumns ? continuationOf(line) : 0;
  std::string text, rest = line;
  while (rest.size() > kMostColumns) {
    const size_t space = rest.rfind(' ', kMostColumns);
    if (space == std::string::npos || rest.find_last_not_of(' ', space) == std::string::npos || space <= indent)
      break; // a single word
    text += rest.substr(0, space) + "\n";
    rest = std::string(indent, ' ') + rest.substr(space + 1);
  }
  return text + rest;
}

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

std::string OrderedHelp::make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const {
  std::istringstream lines(Formatter::make_help(app, std::move(name), mode));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += wrapped(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  return text;
}

std::string OrderedHelp::make_option_opts(const CLI::Option *option) const {
  std::string text = Formatter::make_option_opts(option);
  for (const auto &[label, others] :
       {std::pair("Needs", option->get_needs()), std::pair("Excludes", option->get_excludes())}) {
    std::vector<std::string> names;
    for (const CLI::Option *other : others)
      names.push_back(other->get_name());
    std::ranges::sort(names);
    std::string list;
    for (const std::string &name : names)
      list += " " + name;
    // The same names stand there in another order, so as many characters.
    const std::string head = get_label(label) + ":";
    if (const size_t at = text.find(head); !names.empty() && at != std::string::npos)
      text.replace(at + head.size(), list.size(), list);
  }
  return text;
}

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
