// The schema of a kernel database and the marks by which a file is recognised: sqlite's application_id says
// "a kernel database", user_version is the schema's number. docs/cache_format.md describes every column.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/sqlite.h"

#include <chrono>

namespace nsa {

inline constexpr int64_t kApplicationId = 0x4e53414b; // "NSAK"
inline constexpr int64_t kSchemaVersion = 2;

enum class FileVerdict {
  kUsable,
  kDamaged,     // a kernel database by its header, whose structure does not hold
  kForeign,     // not provably a kernel database, so nothing of ours to touch
  kNewer,       // a schema of a later version of this library
  kLocked,      // another process kept it locked until the end of the wait
  kUnreachable, // cannot be opened, read or created
};

// What a sqlite code says about a file that is being opened. SQLITE_OK is usable.
FileVerdict verdictOf(int code);

// Whether the file is empty or its header says that it is ours: all others must not be touched. kUsable or kForeign, or
// what the failure of reading says. A locked file is waited for until `end`.
FileVerdict checkHeader(const sqlite::Connection &connection, std::chrono::steady_clock::time_point end);

// Recognises the database and sets the connection up; when `mayWrite` it makes the schema in an empty file and brings
// an older one up to date. An older one that cannot be written is read as it is. A file of another program or of a
// newer schema is only read. A locked file is waited for until `end`; later operations wait five seconds each.
FileVerdict adoptDatabase(sqlite::Connection &connection, bool mayWrite, std::chrono::steady_clock::time_point end);

} // namespace nsa
