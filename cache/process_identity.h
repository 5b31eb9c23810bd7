// Names a process so that another one can tell whether it still lives. A pid alone cannot: it is used again, and means
// nothing on another machine or in another container.
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace nsa {

struct ProcessIdentity {
  std::string host; // digest of the boot and the pid namespace: where `pid` has a meaning; "" when unknown
  int64_t pid = 0;
  int64_t started = 0; // clock ticks after boot

  static ProcessIdentity ofThis();
  bool operator==(const ProcessIdentity &) const = default;
};

// Whether a process of this host has ended, one that waits to be reaped included. False when that cannot be known.
bool hasEnded(const ProcessIdentity &process);

} // namespace nsa
