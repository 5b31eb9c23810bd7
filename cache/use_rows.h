// Records which kernels were used on which day, in the table `uses`. The garbage collection of kernels
// (cache/collection.h) finds the least recently used kernels by the table `uses`. Reading a kernel writes nothing: uses
// are gathered in memory, and written with the next put or when the store closes. Thread-safety: none; the store's
// mutex guards the log as it guards the connection.
#pragma once

#include "cache/sqlite.h"

#include <cstdint>
#include <set>
#include <string>

namespace nsa {

// Today as a number of days since 1970, by the wall clock.
int64_t today();

class UseLog {
public:
  // Records that the kernel with this content key was used today.
  void note(const std::string &content) { contents.insert(content); }
  // Removes the kernels from the log whose use on this day is already recorded in the file. Returns sqlite's own code.
  int leaveOutKnown(sqlite::Connection &connection, int64_t day);
  bool isEmpty() const { return contents.empty(); }
  // Writes the recorded uses into the table `uses`, within the caller's transaction. `write` leaves out kernels that
  // are not in the table `kernels`. Returns sqlite's own code.
  int write(sqlite::Connection &connection, int64_t day) const;
  // `clear` must be called after the transaction was committed.
  void clear() { contents.clear(); }

private:
  std::set<std::string> contents;
};

} // namespace nsa
