// The whole command line, with all verbs. The program `nsa` parses its arguments by this command line, and help,
// completion and manual page are made from the same command line.
// Thread-safety: one thread.
#pragma once

#include "tools/nsa/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace nsa::tools {

// The verb that is parsed sets `action`. The values of the options are stored in `action`, so `action` must outlive the
// parsing.
std::unique_ptr<CLI::App> makeCommandLine(Action &action);

} // namespace nsa::tools
