// Runs verbs of this program in processes of their own. A crash ends only its own process, and each run is what a user
// would have called.
// Thread-safety: several threads may call the functions at once.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace nsa::tools {

struct ChildVerb {
  std::vector<std::string> arguments; // after the program's name
  // Files for stdout and stderr. Text is appended to the log.
  std::string output, log;
};

struct ChildOutcome {
  int exitCode = 0; // 128 + the signal, where a signal ended it
  double seconds = 0;
};

// Runs a verb and waits for it. Running a verb is an error only when the process cannot be started.
Result<ChildOutcome> runVerb(const ChildVerb &verb);

} // namespace nsa::tools
