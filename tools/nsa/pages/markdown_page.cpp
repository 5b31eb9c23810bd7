#include "tools/nsa/command/exit_code.h"
#include "tools/nsa/pages/pages.h"

#include <sstream>

namespace nsa::tools {

namespace {

// Without what stands at the ends of lines and of the text.
std::string trimmed(const std::string &text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);)
    result += line.substr(0, line.find_last_not_of(" \t") + 1) + "\n";
  const size_t begin = result.find_first_not_of('\n'), end = result.find_last_not_of('\n');
  return begin == std::string::npos ? "" : result.substr(begin, end - begin + 1);
}

} // namespace

std::string markdownPage(const Verb &program) {
  std::string page = "# Which commands does `nsa` have?\n\n"
                     "Generated from `--help` by the target `nsa_cli_docs`; do not edit.\n";
  page += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const auto &[code, meaning] : kExitCodes)
    page += "| " + std::to_string(static_cast<int>(code)) + " | " + std::string(meaning) + " |\n";
  for (const Verb *verb : program.all())
    page += "\n## " + verb->path() + "\n\n```\n" + trimmed(verb->help) + "\n```\n";
  return page;
}

} // namespace nsa::tools
