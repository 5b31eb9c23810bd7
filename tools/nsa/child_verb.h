// Verbs of this program in processes of their own, so that one which crashes ends nothing but itself, and each is what
// a user would have called. Thread-safety: functions may be called by several threads at once.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace nsa::tools {

struct ChildVerb {
  std::vector<std::string> arguments; // after the program's name
  std::string output, log;            // files that receive stdout and what goes to stderr; the log is appended to
};

struct ChildOutcome {
  int exitCode = 0; // 128 + the signal where one ended it
  double seconds = 0;
};

// An error only when it cannot be started.
Result<ChildOutcome> runVerb(const ChildVerb &verb);

} // namespace nsa::tools
