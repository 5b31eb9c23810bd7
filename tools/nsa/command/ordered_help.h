// Prints help with lines of at most 100 characters, and the options that an option needs or excludes always in the same
// order. The parser's library keeps the needed and excluded options in sets of pointers, whose order depends on the
// heap.
// Thread-safety: ordered_help.h has only pure functions.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace nsa::tools {

class OrderedHelp : public CLI::Formatter {
public:
  std::string make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const override;
  // Lists the needed and excluded options ordered by name.
  std::string make_option_opts(const CLI::Option *option) const override;
};

} // namespace nsa::tools
