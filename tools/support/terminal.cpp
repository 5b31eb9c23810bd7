#include "tools/support/terminal.h"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace nsa::tools {
namespace {

std::string_view variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

} // namespace

std::string coloured(int to, Colour colour, const std::string &text) {
  const std::string_view terminal = variable("TERM");
  if (isatty(to) == 0 || !variable("NO_COLOR").empty() || terminal.empty() || terminal == "dumb")
    return text;
  return (colour == Colour::kRed ? "\033[1;31m" : "\033[1;33m") + text + "\033[0m";
}

} // namespace nsa::tools
