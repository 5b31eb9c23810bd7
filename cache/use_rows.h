// Which kernels were used, and on which day: the table `uses`, by which least recently used kernels are found. Reading
// a kernel writes nothing: uses are gathered in memory and written with the next put, or when the store closes.
// Thread-safety: none; the store's mutex guards the log as its connection.
#pragma once

#include "cache/sqlite.h"

#include <cstdint>
#include <set>
#include <string>

namespace nsa {

// Days since 1970, by the wall clock.
int64_t today();

class UseLog {
public:
  // This content was served today.
  void note(const std::string &content) { contents.insert(content); }
  // Forgets what the file already says of this day. sqlite's own code.
  int leaveOutKnown(sqlite::Connection &connection, int64_t day);
  bool isEmpty() const { return contents.empty(); }
  // Inside the caller's transaction. A content whose kernel is gone is left out. sqlite's own code.
  int write(sqlite::Connection &connection, int64_t day) const;
  // After the transaction was committed.
  void clear() { contents.clear(); }

private:
  std::set<std::string> contents;
};

} // namespace nsa
