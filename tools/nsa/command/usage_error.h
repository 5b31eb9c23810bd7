// Makes the error texts for a command line that the parser did not accept.
// Thread-safety: usage_error.h has only pure functions.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace nsa::tools {

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
