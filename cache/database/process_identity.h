// Identifies a process so that another process can find out whether it is still running. A process id alone does not
// identify a process: the system reuses the ids of ended processes, and an id means nothing on another machine or in
// another container.
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace nsa {

struct ProcessIdentity {
  // A digest that identifies the boot of the machine and the pid namespace in which `pid` is valid; "" when unknown.
  std::string host;
  int64_t pid = 0;
  int64_t started = 0; // clock ticks after the boot

  static ProcessIdentity ofThis();
  bool operator==(const ProcessIdentity &) const = default;
};

// Returns whether a process of this host has ended. A zombie process, which its parent has not reaped yet, counts as
// ended. hasEnded returns false if it cannot find out whether the process has ended.
bool hasEnded(const ProcessIdentity &process);

} // namespace nsa
