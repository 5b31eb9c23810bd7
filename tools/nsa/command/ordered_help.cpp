#include "tools/nsa/command/ordered_help.h"

#include <algorithm>
#include <sstream>
#include <string>
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

} // namespace nsa::tools
