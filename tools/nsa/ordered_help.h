// Prints the help of an option always in the same order. The parser's library keeps the options that an option needs or
// excludes in sets of pointers, whose order depends on the heap.
// Thread-safety: pure functions.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace nsa::tools {

class OrderedHelp : public CLI::Formatter {
public:
  // Lists the other options ordered by name.
  std::string make_option_opts(const CLI::Option *option) const override;
};

} // namespace nsa::tools
