#include "tools/nsa/command/exit_code.h"
#include "tools/nsa/pages/verb.h"

#include <sstream>

namespace nsa::tools {

namespace {

// As it is, also where troff would see a command of its own.
std::string escaped(const std::string &text) {
  std::string result;
  bool atLineStart = true;
  for (const char c : text) {
    if (atLineStart && (c == '.' || c == '\''))
      result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    atLineStart = c == '\n';
  }
  return result;
}

// "-o, --output FILE"
std::string tagOf(const Option &option) {
  std::string tag;
  for (const std::string &name : option.names)
    tag += (tag.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
  if (!option.valueName.empty())
    tag += (tag.empty() ? "" : " ") + ("\\fI" + escaped(option.valueName) + "\\fR");
  return tag;
}

void addList(std::string &page, const std::vector<Option> &options) {
  for (const Option &option : options)
    page += ".TP\n" + tagOf(option) + "\n" + escaped(option.description) + "\n";
}

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

std::string manualPage(const Verb &program, const std::string &version) {
  const std::string &name = program.name();
  // No date: the same source gives the same page.
  std::string page = ".TH NSA 1 \"\" \"" + escaped(name + " " + version) + "\" \"User Commands\"\n";
  page += ".SH NAME\n" + name + " \\- " + escaped(program.description) + "\n";
  page += ".SH SYNOPSIS\n.B " + name + "\n\\fIVERB\\fR [\\fIOPTIONS\\fR]\n";
  page += ".SH OPTIONS\n";
  addList(page, program.options);
  page += ".SH VERBS\n";
  for (const Verb *verb : program.all()) {
    if (verb == &program || !verb->verbs.empty()) // one that has verbs below takes nothing itself
      continue;
    page += ".SS " + escaped(verb->path()) + "\n" + escaped(verb->description) + "\n";
    addList(page, verb->places);
    addList(page, verb->options);
    if (!verb->footer.empty())
      page += ".PP\n" + escaped(verb->footer) + "\n";
  }
  page += ".SH EXIT STATUS\n";
  for (const auto &[code, meaning] : kExitCodes)
    page += ".TP\n" + std::to_string(static_cast<int>(code)) + "\n" + escaped(std::string(meaning)) + "\n";
  return page;
}

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
