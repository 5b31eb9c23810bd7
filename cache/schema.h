// The schema of a kernel database and the marks by which a file is recognised: sqlite's application_id says
// "a kernel database" or "a pack", user_version is the schema's number. docs/cache_format.md describes every column.
// Thread-safety: none, as the connection.
#pragma once

#include "cache/file_system.h"
#include "cache/sqlite.h"
#include "cache/tables.h"

#include <chrono>

namespace nsa {

enum class FileKind { kDatabase, kPack };
int64_t applicationOf(FileKind kind);

enum class FileVerdict {
  kUsable,
  kDamaged,     // ours by its header, and its structure does not hold
  kForeign,     // not provably ours, so nothing to touch
  kNewer,       // a schema of a later version of this library
  kLocked,      // another process kept it locked until the end of the wait
  kNoLocks,     // its file system gives no locks
  kEmpty,       // nothing is in it yet, and nothing may be written
  kReplaced,    // another file took its name while it was opened
  kUnreachable, // cannot be opened, read or created
};

// Whether a sqlite code says that the file system cannot lock the file; an extended code.
bool isLackOfLocks(int code);

// What a sqlite code says about a file that is being opened. SQLITE_OK is usable.
FileVerdict verdictOf(int code);

// Whether the file's header says that it is of that kind, or it is an empty database: all others must not be touched.
// kUsable, kForeign or (a database) kNewer, or what the failure of reading says. A locked file is waited for until
// `end`.
FileVerdict checkHeader(const sqlite::Connection &connection, FileKind kind, std::chrono::steady_clock::time_point end);

// Recognises the database and sets the connection up; when `mayWrite` it makes the schema in an empty file and brings
// an older one up to date. An older one that cannot be written is read as it is. A file of another program or of a
// newer schema is only read. A locked file is waited for until `end`; later operations wait five seconds each.
FileVerdict adoptDatabase(sqlite::Connection &connection, bool mayWrite, Journal journal,
                          std::chrono::steady_clock::time_point end);

// The same for a pack, which is only read and never locked.
FileVerdict adoptPack(sqlite::Connection &connection);

} // namespace nsa
