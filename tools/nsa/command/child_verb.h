// Runs verbs of this program in processes of their own. A verb that crashes ends only its own process, and each run of
// a verb is a command that a user could have called.
// Thread-safety: several threads may call the functions at once.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace nsa::tools {

struct ChildVerb {
  std::vector<std::string> arguments; // after the program's name
  // Files for stdout and stderr. What the process prints on stderr is appended to the file `log`.
  std::string output, log;
};

struct ChildOutcome {
  int exitCode = 0; // 128 + the signal, where a signal ended it
  double seconds = 0;
};

// Runs a verb of this program in its own process and waits for the end of the process. The result is an error only when
// the process cannot be started; a verb that fails is no error of this function.
Result<ChildOutcome> runVerb(const ChildVerb &verb);

} // namespace nsa::tools
