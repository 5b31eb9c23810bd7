// A program in a process of its own, with a limit on its time. Thread-safety: may be called by several threads at once.
#pragma once

#include "runtime/base/status.h"

#include <map>
#include <string>
#include <vector>

namespace nsa::mutation {

struct Child {
  std::string program;
  std::vector<std::string> arguments;
  std::string log;                                // receives stdout and stderr
  std::map<std::string, std::string> environment; // besides this process's own
  std::string removedPrefix;                      // of variables that the child does not get
  double limitSeconds = 0;                        // then it is killed
};

struct ChildEnd {
  int exitCode = 0;
  int signal = 0; // that ended it; 0: it exited
  bool isHung = false;
  double seconds = 0;
};

// An error only when it cannot be started.
Result<ChildEnd> runChild(const Child &child);

} // namespace nsa::mutation
