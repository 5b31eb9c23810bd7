// The parser for the whole command line of the program `nsa`. The help text, the shell completion and the manual page
// are made from the same parser.
// Thread-safety: one thread.
#pragma once

#include "tools/nsa/command/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace nsa::tools {

// Makes the parser with all verbs. When a command line is parsed, its verb stores in `action` the function that does
// the work. The parser holds a reference to `action`, so `action` must not be destroyed before the command line is
// parsed.
std::unique_ptr<CLI::App> makeCommandLine(Action &action);

} // namespace nsa::tools
