// The whole command line, verb by verb: what the program parses, and what its help, completion and manual page are made
// of. Thread-safety: one thread.
#pragma once

#include "tools/nsa/command.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace nsa::tools {

// The verb that is parsed sets `action`, which the options' values go with: it must outlive the parsing.
std::unique_ptr<CLI::App> makeCommandLine(Action &action);

} // namespace nsa::tools
