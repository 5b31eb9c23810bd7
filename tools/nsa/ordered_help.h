// What `--help` prints for an option, always in the same order: the library keeps what an option needs and excludes in
// sets of pointers, whose order is that of the heap. Thread-safety: pure.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace nsa::tools {

class OrderedHelp : public CLI::Formatter {
public:
  // The other options by name.
  std::string make_option_opts(const CLI::Option *option) const override;
};

} // namespace nsa::tools
