// What the parser of the command line tells users: help, and errors for a command line that it did not accept.
// Thread-safety: parser_texts.h has only pure functions.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace nsa::tools {

// Prints help with lines of at most 100 characters, and the options that an option needs or excludes ordered by name.
// The parser's library keeps them in sets of pointers, whose order depends on the heap.
class OrderedHelp : public CLI::Formatter {
public:
  std::string make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option_opts(const CLI::Option *option) const override;
};

// "nsa cache list"
std::string verbPath(const CLI::App &verb);
// The text that `nsa VERB --help` prints. The help text does not depend on what was parsed.
std::string helpOf(const CLI::App &verb);

// The error for a word that names no verb below `verb`: "unknown verb 'lst' of `nsa cache`: did you mean list?".
std::string unknownVerb(const CLI::App &verb, const std::string &word);

struct UsageError {
  std::string verbs; // the help of a verb that lacks the name of a verb below it; else empty
  std::string text;
};
// The argument `app` has parsed the command line and thrown `error`.
UsageError usageErrorOf(const CLI::App &app, const CLI::ParseError &error);

} // namespace nsa::tools
