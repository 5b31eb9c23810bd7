// Names a process so that another process can tell whether it still lives. A process id alone does not identify a
// process: the system uses ids again, and an id means nothing on another machine or in another container.
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace nsa {

struct ProcessIdentity {
  // A digest of the boot and the pid namespace within which `pid` has a meaning; "" when unknown.
  std::string host;
  int64_t pid = 0;
  int64_t started = 0; // clock ticks after the boot

  static ProcessIdentity ofThis();
  bool operator==(const ProcessIdentity &) const = default;
};

// Returns whether a process of this host has ended. A process that waits to be reaped has ended. The answer is false if
// the end of a process cannot be known.
bool hasEnded(const ProcessIdentity &process);

} // namespace nsa
