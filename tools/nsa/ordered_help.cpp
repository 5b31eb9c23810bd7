#include "tools/nsa/ordered_help.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nsa::tools {

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
