// The schema of a kernel database and the marks by which a file is recognised: sqlite's application_id says
// "a kernel database", user_version is the schema's number. docs/cache_format.md describes every column.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/sqlite.h"

namespace nsa {

inline constexpr int64_t kApplicationId = 0x4e53414b; // "NSAK"
inline constexpr int64_t kSchemaVersion = 1;

enum class FileVerdict {
  kUsable,
  kDamaged,     // not a database, or one whose structure does not hold
  kForeign,     // a database of some other program
  kNewer,       // a schema of a later version of this library
  kLocked,      // another process kept it locked for the whole timeout
  kUnreachable, // cannot be opened, read or created
};

// What a sqlite code says about a file that is being opened. SQLITE_OK is usable.
FileVerdict verdictOf(int code);

// Recognises the database and sets the connection up; makes the schema in an empty file when `mayWrite`.
// A file of another program or of a newer schema is only read.
FileVerdict adoptDatabase(sqlite::Connection &connection, bool mayWrite);

} // namespace nsa
