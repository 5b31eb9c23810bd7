// Records which kernels were used on which day, in the table `uses`. The garbage collection of kernels
// (cache/rows/collection.h) finds the least recently used kernels by the table `uses`. Reading a kernel from the store
// writes nothing to the file: a UseLog keeps in memory which kernels were used, and the store writes the UseLog to the
// file with the next put or when the store closes.
// Thread-safety: none; the store's mutex guards the UseLog as it guards the connection.
#pragma once

#include "cache/database/sqlite.h"

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
  // Removes a kernel from the UseLog if the file already records that the kernel was used on `day`. Returns sqlite's
  // own code.
  int leaveOutKnown(sqlite::Connection &connection, int64_t day);
  bool isEmpty() const { return contents.empty(); }
  // Writes the recorded uses into the table `uses`, within the caller's transaction. `write` leaves out kernels that
  // are not in the table `kernels`. Returns sqlite's own code.
  int write(sqlite::Connection &connection, int64_t day) const;
  // Empties the UseLog. `clear` must be called only after the transaction that contains `write` was committed.
  void clear() { contents.clear(); }

private:
  std::set<std::string> contents;
};

} // namespace nsa
