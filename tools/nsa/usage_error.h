// What is said of a command line that the parser did not accept.
// Thread-safety: pure functions.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace nsa::tools {

// "nsa cache list"
std::string verbPath(const CLI::App &verb);
// What `nsa VERB --help` prints, whatever was parsed.
std::string helpOf(const CLI::App &verb);

// "unknown verb 'lst' of `nsa cache`: did you mean list?"; `verb` has no verb of that name below it.
std::string unknownVerb(const CLI::App &verb, const std::string &word);

struct UsageError {
  std::string verbs; // the help of a verb that stands alone and needs another one behind it; else empty
  std::string text;
};
// `app` has parsed the command line and thrown `error`.
UsageError usageErrorOf(const CLI::App &app, const CLI::ParseError &error);

} // namespace nsa::tools
